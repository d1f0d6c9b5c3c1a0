"""Headers on their way to the server and back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.rest.envoy.edge import body_of, request_for
from tests.rest.envoy.paths import CHAT

if TYPE_CHECKING:
    from tests.rest.envoy.edge import Edge


async def test_a_request_id_is_made_where_there_is_none(gate: Edge) -> None:
    answer = await gate.post({})
    assert answer.headers["x-request-id"] == gate.seen.last["x-request-id"]
    assert len(answer.headers["x-request-id"]) == 36


@pytest.mark.parametrize("own", ["mine", "7f0c2f4e-9c5a-4d6b-8f1e-0123456789ab"])
async def test_a_callers_request_id_is_kept(gate: Edge, own: str) -> None:
    for script in ({}, {"stream": True}, {"abort": "NOT_FOUND"}):
        answer = await gate.post(script, headers={"x-request-id": own})
        assert answer.headers["x-request-id"] == own
        assert gate.seen.last["x-request-id"] == own
    answer = await gate.http.get("/nope", headers={"x-request-id": own})
    assert answer.headers["x-request-id"] == own


async def test_the_server_is_told_of_the_rest_request(gate: Edge) -> None:
    await gate.post({}, CHAT + "?a=1", headers={"authorization": "Bearer k", "openai-project": "p"})
    assert gate.seen.last["x-envoy-original-path"] == CHAT + "?a=1"
    assert gate.seen.last["x-envoy-original-method"] == "POST"
    assert gate.seen.last["authorization"] == "Bearer k"
    assert gate.seen.last["openai-project"] == "p"
    await gate.http.get("/v3/models")
    assert gate.seen.last["x-envoy-original-path"] == "/v3/models"
    assert gate.seen.last["x-envoy-original-method"] == "GET"


async def test_a_client_cannot_steer_envoy(gate: Edge) -> None:
    headers = {
        "x-envoy-original-path": "/forged",
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-envoy-retry-on": "5xx",
    }
    answer = await gate.post({}, headers=headers)
    assert answer.status_code == 200
    assert gate.seen.last["x-envoy-original-path"] == CHAT
    assert "x-envoy-retry-on" not in gate.seen.last


@pytest.mark.parametrize("name", ["grpc-encoding", "grpc-accept-encoding"])
@pytest.mark.parametrize("path", [CHAT, "/v3/models"])
async def test_rest_callers_cannot_say_how_messages_are_encoded(
    gate: Edge, path: str, name: str
) -> None:
    method = "GET" if path == "/v3/models" else "POST"
    answer = await gate.http.request(method, path, content=b"{}", headers={name: "nobodys"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", [CHAT, "/ovchat/v1/chat:stream"])
async def test_a_stream_tells_proxies_not_to_hold_it_back(gate: Edge, path: str) -> None:
    answer = await gate.post(request_for(path, {"stream": True}), path)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "header",
    [
        b"x-title: caf\xe9",
        b"x-title: caf\xc3\xa9",
        b"authorization: Bearer secret\xff",
        b"user-agent: secret\xff",
        b"x-request-id: secret\xff",
        b"x-title: " + b"\xff" * 50_000,
    ],
)
@pytest.mark.parametrize("path", [CHAT, "/ovchat/v1/chat:create", "/v1/messages"])
async def test_a_header_with_bytes_that_none_may_have_is_refused_and_not_logged(
    gate: Edge, path: str, header: bytes
) -> None:
    before, told = len(gate.seen.metadata), gate.access_log.stat().st_size
    answer = await gate.raw(
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n%s\r\n"
        b"content-length: 2\r\nconnection: close\r\n\r\n{}" % (path.encode(), header)
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert "visible ASCII" in body_of(answer)["message"]
    assert len(gate.seen.metadata) == before
    while (log := gate.access_log.read_bytes()[told:])[-1:] != b"\n":  # noqa: ASYNC110  another process writes it
        await asyncio.sleep(0.01)
    assert b"400" in log
    assert b"secret" not in log
    assert b"\xff" not in log
    assert len(log) < 1000


@pytest.mark.parametrize("value", [b"a\tb", b"~ !", b""])
async def test_a_header_may_have_all_visible_ascii_spaces_and_tabs(
    gate: Edge, value: bytes
) -> None:
    answer = await gate.raw(
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-title: %s\r\n"
        b"content-length: 2\r\nconnection: close\r\n\r\n{}" % (CHAT.encode(), value)
    )
    assert answer.startswith(b"HTTP/1.1 200 ")
