"""Servers that are away or slow, and clients that are."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest

from ovchat.v1 import chat_pb2
from tests.rest.envoy.edge import Edge, assert_error, body_of, chat_stub, edge, manager
from tests.rest.envoy.paths import CHAT, DOORS, GET_PATHS, POST_PATHS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False) as gate:
        requests = [("POST", path) for path in POST_PATHS] + [("GET", path) for path in GET_PATHS]
        for method, path in requests:
            answer = await gate.http.request(method, path)
            assert_error(answer, 503, "service_unavailable")
            assert answer.headers["retry-after"] == "1"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await chat_stub(gate).CreateChatCompletion(chat_pb2.CreateChatCompletionRequest())
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "{" not in (caught.value.details() or "")


@contextlib.asynccontextmanager
async def impostor(answer: bytes) -> AsyncIterator[int]:
    """The port of a server that says `answer` to anything, and hangs up."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (b"", 503, "service_unavailable"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 502, "internal_error"),
    ],
    ids=["dies", "speaks something else"],
)
async def test_a_server_that_gives_no_answer(
    tmp_path: Path, answer: bytes, status: int, code: str
) -> None:
    async with impostor(answer) as port:

        def elsewhere(config: dict[str, Any]) -> None:
            load = config["static_resources"]["clusters"][0]["load_assignment"]
            endpoint = load["endpoints"][0]["lb_endpoints"][0]["endpoint"]
            endpoint["address"]["socket_address"]["port_value"] = port

        async with edge(tmp_path, elsewhere) as gate:
            for path in DOORS:
                got = await gate.post({}, path)
                assert_error(got, status, code)
                assert got.headers.get("retry-after") == ("1" if status == 503 else None)


async def test_an_answer_that_takes_too_long_is_a_timeout(tmp_path: Path) -> None:
    # Nobody sets such a limit here; who does gets the shape of all errors.
    def impatient(config: dict[str, Any]) -> None:
        for route in manager(config)["route_config"]["virtual_hosts"][0]["routes"]:
            if route["name"] == "post":
                route["route"]["timeout"] = "0.1s"

    async with edge(tmp_path, impatient) as gate:
        assert_error(await gate.post({"hang": True}), 504, "timeout")


async def test_more_requests_than_the_proxy_takes_is_overload(tmp_path: Path) -> None:
    def one_request(config: dict[str, Any]) -> None:
        cluster = config["static_resources"]["clusters"][0]
        cluster["circuit_breakers"]["thresholds"][0]["max_requests"] = 1

    async with edge(tmp_path, one_request) as gate:
        script = {"stream": True, "stepwise": True}
        async with gate.http.stream("POST", CHAT, json=script):
            answer = await gate.post({})
            assert_error(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == "1"


async def test_a_body_that_stops_arriving_times_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["request_timeout"] = "0.3s"

    async with edge(tmp_path, impatient) as gate:
        answer = await gate.raw(
            b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n"
            b"connection: close\r\n\r\n{"
        )
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert body_of(answer)["code"] == "timeout"
        # The limit is the request's, which comes at once here, and not the answer's.
        body = b'{"stream": true, "stepwise": true, "events": 1}'
        answering = asyncio.create_task(
            gate.raw(
                b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: slow\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            )
        )
        call = gate.seen.calls["slow"]
        await call.reached.wait()
        # Twice the limit.
        await asyncio.sleep(0.6)
        call.go_on.set()
        assert b"data: [DONE]" in await answering


async def test_headers_that_stop_arriving_time_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["request_headers_timeout"] = "0.3s"

    async with edge(tmp_path, impatient) as gate:
        answer = await gate.raw(b"GET /health HTTP/1.1\r\nhost: x\r\n")
        assert answer.startswith(b"HTTP/1.1 408 "), answer
        assert body_of(answer)["code"] == "timeout"


@pytest.mark.slow
async def test_a_server_silent_for_too_long_times_out(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        # Longer than the first event may take.
        manager(config)["stream_idle_timeout"] = "2s"

    async with edge(tmp_path, impatient) as gate:
        script = {"stream": True, "stepwise": True, "events": 1}
        with pytest.raises(httpx.RemoteProtocolError):
            await gate.post(script, headers={"x-request-id": "silent"})
        await gate.seen.calls["silent"].cancelled.wait()


async def test_a_rest_callers_deadline_is_a_timeout(gate: Edge) -> None:
    answer = await gate.post({"hang": True}, headers={"grpc-timeout": "200m"})
    assert_error(answer, 504, "timeout")
