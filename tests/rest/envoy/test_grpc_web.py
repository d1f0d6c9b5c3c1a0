"""gRPC-Web, as browsers speak it: frames of gRPC in HTTP/1.1, with the trailers as the last one."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import chat_pb2
from tests.http2 import message
from tests.rest.envoy.edge import Edge, chat_request, edge, open_to

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

TRAILERS = 0x80
KINDS = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
]


@pytest.fixture(scope="module")
async def pages(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edge]:
    """With pages of one origin."""
    async with edge(tmp_path_factory.mktemp("pages"), open_to("https://app.example")) as running:
        yield running


async def called(gate: Edge, method: str, kind: str, script: dict[str, Any]) -> httpx.Response:
    body = message(chat_request(script).SerializeToString())
    return await gate.http.post(
        f"/ovchat.v1.ChatService/{method}",
        content=base64.b64encode(body) if "text" in kind else body,
        headers={
            "content-type": kind,
            "accept": kind,
            "x-grpc-web": "1",
            "origin": "https://app.example",
        },
    )


def frames(answer: httpx.Response, kind: str) -> tuple[list[bytes], str]:
    """The messages of an answer, and its trailers."""
    data = answer.content
    if "text" in kind:
        # Parts are encoded each by itself, so there is padding between them.
        data = b"".join(
            base64.b64decode(data[start : start + 4]) for start in range(0, len(data), 4)
        )
    messages, trailers = [], ""
    while data:
        flags, size = struct.unpack(">BI", data[:5])
        payload, data = data[5 : 5 + size], data[5 + size :]
        if flags & TRAILERS:
            trailers = payload.decode()
        else:
            messages.append(payload)
    return messages, trailers


@pytest.mark.parametrize("kind", KINDS)
async def test_a_browsers_call_is_answered(pages: Edge, kind: str) -> None:
    answer = await called(pages, "CreateChatCompletion", kind, {})

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/grpc-web")
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    [body], trailers = frames(answer, kind)
    assert chat_pb2.ChatCompletion.FromString(body).system_fingerprint == "demo"
    assert "grpc-status:0" in trailers


@pytest.mark.parametrize("kind", KINDS)
async def test_a_browsers_stream_has_every_message(gate: Edge, kind: str) -> None:
    answer = await called(gate, "StreamChatCompletion", kind, {"events": 3})

    bodies, trailers = frames(answer, kind)
    ids = [chat_pb2.ChatCompletionChunk.FromString(body).id for body in bodies]
    assert ids == ["0", "1", "2"]
    assert "grpc-status:0" in trailers


async def test_a_browser_may_read_the_status_of_an_error(pages: Edge) -> None:
    script = {"abort": "NOT_FOUND", "details": "no such model", "rich": "type.example/x"}
    answer = await called(pages, "CreateChatCompletion", KINDS[0], script)

    assert (answer.headers["grpc-status"], answer.headers["grpc-message"]) == ("5", "no such model")
    exposed = set(answer.headers["access-control-expose-headers"].replace(" ", "").split(","))
    assert {"grpc-status", "grpc-message", "grpc-status-details-bin"} <= exposed
    assert "grpc-status-details-bin" in answer.headers
