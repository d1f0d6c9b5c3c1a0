"""What Envoy itself refuses: bodies, headers, ways of HTTP."""

# ruff: noqa: FBT001  flags of tests

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.envoy.edge import Edge, assert_error, body_of, edge, manager
from tests.rest.envoy.paths import CHAT, PROVIDER_CHAT
from tests.rest.envoy.scripted import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def test_any_other_reply_of_envoys_has_the_shape_too(tmp_path: Path) -> None:
    codes = {
        401: "invalid_request",
        403: "invalid_request",
        418: "invalid_request",
        500: "internal_error",
        502: "internal_error",
    }

    def reply(config: dict[str, Any]) -> None:
        routes = manager(config)["route_config"]["virtual_hosts"][0]["routes"]
        body = {"inline_string": 'a "quoted"\nline'}
        routes[-1:-1] = [
            {
                **routes[-1],
                "match": {"path": f"/{status}"},
                "direct_response": {"status": status, "body": body},
            }
            for status in codes
        ]

    async with edge(tmp_path, reply) as gate:
        for status, code in codes.items():
            error = assert_error(await gate.http.get(f"/{status}"), status, code)
            assert error["message"].endswith('a "quoted"\nline')


@pytest.mark.parametrize("path", [CHAT, PROVIDER_CHAT])
async def test_a_body_up_to_the_limit_passes(gate: Edge, path: str) -> None:
    body = b'{"a": "' + b"x" * (MAX_BYTES - 9) + b'"}'
    assert len(body) == MAX_BYTES
    answer = await gate.http.post(path, content=body)
    assert answer.json() == {"bytes": len(body)}


@pytest.mark.parametrize("path", [CHAT, PROVIDER_CHAT, "/ovchat/v1/chat:create"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_above_the_limit_is_too_large(gate: Edge, path: str, chunked: bool) -> None:
    body = b'{"user": "' + b"x" * (MAX_BYTES + 100) + b'"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]

    answer = await gate.http.post(path, content=pieces() if chunked else body)
    error = assert_error(answer, 413, "request_too_large")
    assert str(MAX_BYTES) in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        '{"temperature": "hot"}',
        '{"model": "a\\"b", "temperature": {"a": "\\n\\""}}',
        '{"messages": [{"role": "\\"\\\\"}]}',
        "{not json",
        "[1]",
        "",
    ],
)
async def test_what_the_transcoder_cannot_read_is_an_invalid_request(gate: Edge, body: str) -> None:
    answer = await gate.http.post("/ovchat/v1/chat:create", content=body)
    if body:
        assert_error(answer, 400, "invalid_request")
    else:
        assert answer.status_code == 200


async def test_too_large_headers_are_refused(gate: Edge) -> None:
    answer = await gate.http.get("/health", headers={"x-large": "x" * 100_000})
    assert_error(answer, 431, "headers_too_large")


async def test_the_limits_of_headers_are_as_told(gate: Edge) -> None:
    for headers, status in (
        ({"x-large": "x" * 59_000}, 200),
        ({"x-large": "x" * 61_440}, 431),
        ({f"x-{number}": "" for number in range(90)}, 200),
        ({f"x-{number}": "" for number in range(101)}, 431),
    ):
        answer = await gate.http.get("/health", headers=headers)
        assert answer.status_code == status
    message = assert_error(answer, 431, "headers_too_large")["message"]
    assert "60 KiB" in message
    assert "100" in message


async def test_an_upgrade_is_refused(gate: Edge) -> None:
    answer = await gate.raw(
        b"GET /v3/models HTTP/1.1\r\nhost: x\r\n"
        b"connection: upgrade, close\r\nupgrade: websocket\r\n"
        b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert body_of(answer)["code"] == "upgrade_not_supported"


async def test_an_offer_to_upgrade_to_http_2_is_passed_over(gate: Edge) -> None:
    # What Java's HttpClient sends with every first request.
    answer = await gate.raw(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\n"
        b"connection: Upgrade, HTTP2-Settings, close\r\n"
        b"upgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    assert answer.startswith(b"HTTP/1.1 200 "), answer


async def test_a_malformed_request_is_invalid(gate: Edge) -> None:
    answer = await gate.raw(b"GET /health HTTP/1.1\r\nbad header\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert body_of(answer)["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("request_line", "headers", "reason"),
    [
        (b"GET /health", b"", "missing_host_header"),
        (b"GET /%00", b"host: x\r\n", "path_normalization_failed"),
        (
            b"POST /v3/chat/completions",
            b"host: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
            "http1.content_length_and_chunked_not_allowed",
        ),
    ],
)
async def test_a_malformed_request_is_told_why(
    gate: Edge, request_line: bytes, headers: bytes, reason: str
) -> None:
    answer = await gate.raw(
        request_line + b" HTTP/1.1\r\n" + headers + b"connection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    error = body_of(answer)
    assert error["code"] == "invalid_request"
    assert reason in error["message"]


async def test_a_compressed_transfer_is_not_implemented(gate: Edge) -> None:
    answer = await gate.raw(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\n"
        b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 501 "), answer
    error = body_of(answer)
    assert error["code"] == "unsupported_transfer_encoding"
    assert "transfer-encoding" in error["message"]


async def test_http_1_0_is_answered(gate: Edge) -> None:
    answer = await gate.raw(
        b'POST /v3/chat/completions HTTP/1.0\r\ncontent-length: 16\r\n\r\n{"stream": true}'
    )
    assert b" 200 OK\r\n" in answer
    assert answer.partition(b"\r\n\r\n")[2] == (
        b"data: 0\n\ndata: 1\n\ndata: 2\n\ndata: [DONE]\n\n"
    )


@pytest.mark.parametrize("given", ["x", "", "1", "1h", "123456789S", "-1S", "1.5S"])
@pytest.mark.parametrize("path", [CHAT, "/ovchat/v1/chat:create", "/v3/models"])
async def test_a_deadline_that_is_none_is_the_callers_fault(
    gate: Edge, path: str, given: str
) -> None:
    method = "GET" if path == "/v3/models" else "POST"
    answer = await gate.http.request(method, path, headers={"grpc-timeout": given})
    error = assert_error(answer, 400, "invalid_value")
    assert "grpc-timeout" in error["message"]
