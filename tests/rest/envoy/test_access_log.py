"""What Envoy writes down: what no server answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from google.api import httpbody_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ovchat.v1 import rest_service_pb2_grpc
from ovchat_server.launch.envoy_config import Address
from ovchat_server.launch.envoy_logs import EnvoyLogs
from tests.http2 import DATA, END_HEADERS, HEADERS, PREFACE, SETTINGS, frame, message
from tests.rest.envoy.edge import chat_request, chat_stub, edge, logged
from tests.rest.envoy.paths import CHAT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.rest.envoy.edge import Edge

MESSAGE = re.compile(r"GET /nope 404 direct_response \d+ ms")
PROBES = ("/health", "/v2/health/live", "/v2/health/ready", "/v2/models/demo/ready")


async def entry_of(gate: Edge, own: str) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(await logged(gate, own))
    return entry


async def not_logged(gate: Edge, *own: str) -> None:
    """None of the requests before this one has a line."""
    await gate.http.get("/nope", headers={"x-request-id": "the-last"})
    await logged(gate, "the-last")
    text = gate.access_log.read_text()
    assert not [identifier for identifier in own if identifier in text], text


async def test_what_envoy_refuses_is_logged_as_servers_log(gate: Edge) -> None:
    headers = {"x-request-id": "log-1", "user-agent": "curl/8"}
    await gate.http.get("/nope?secret=1", headers=headers)
    entry = await entry_of(gate, "log-1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", entry.pop("timestamp"))
    assert MESSAGE.fullmatch(entry.pop("message"))
    assert entry.pop("duration_ms") >= 0
    assert entry == {
        "level": "INFO",
        "logger": "envoy.access",
        "request_id": "log-1",
        "method": "GET",
        "path": "/nope",
        "status": 404,
        "client": "127.0.0.1",
        "user_agent": "curl/8",
        "details": "direct_response",
        "flags": "-",
    }


@pytest.mark.parametrize("status", [405, 413, 415])
async def test_every_refusal_is_logged(gate: Edge, status: int) -> None:
    own = f"refused-{status}"
    headers = {"x-request-id": own, "content-type": "text/html" if status == 415 else "text/json"}
    content = b"{" * ((8 << 20) + 1) if status == 413 else b"{}"
    if status == 413:
        headers["content-type"] = "application/json"
    method = "PUT" if status == 405 else "POST"
    await gate.http.request(method, CHAT, content=content, headers=headers)
    entry = await entry_of(gate, own)
    assert (entry["status"], entry["method"], entry["path"]) == (status, method, CHAT)


async def test_what_a_server_answered_is_not_logged(gate: Edge) -> None:
    await gate.post({"stream": True}, headers={"x-request-id": "answered-1"})
    await gate.post({"abort": "INTERNAL"}, headers={"x-request-id": "answered-2"})
    await gate.http.get("/v3/models", headers={"x-request-id": "answered-3"})
    with pytest.raises(grpc.aio.AioRpcError):
        await chat_stub(gate).CreateChatCompletion(
            chat_request({"abort": "NOT_FOUND"}), metadata=(("x-request-id", "answered-4"),)
        )
    await not_logged(gate, *(f"answered-{number}" for number in range(1, 5)))


async def test_a_client_that_leaves_a_server_is_in_that_servers_log(gate: Edge) -> None:
    asking = asyncio.create_task(gate.post({"hang": True}, headers={"x-request-id": "left-unary"}))
    await gate.seen.calls["left-unary"].reached.wait()
    asking.cancel()

    stub = rest_service_pb2_grpc.RestServiceStub(gate.channel)
    body = httpbody_pb2.HttpBody(data=b'{"hang": true}')
    call = stub.CreateChatCompletion(body, metadata=(("x-request-id", "left-native"),))
    await gate.seen.calls["left-native"].reached.wait()
    call.cancel()

    script = {"stream": True, "stepwise": True}
    headers = {"x-request-id": "left-stream"}
    async with gate.http.stream("POST", CHAT, json=script, headers=headers) as answer:
        await anext(answer.aiter_text())
    await gate.seen.calls["left-stream"].cancelled.wait()
    await not_logged(gate, "left-unary", "left-native", "left-stream")


async def test_a_client_that_left_while_it_sent_is_logged_as_499(gate: Edge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(
        b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: left-sending\r\n"
        b"content-length: 50\r\nexpect: 100-continue\r\n\r\n{"
    )
    assert b" 100 " in await reader.readline()
    writer.close()
    entry = await entry_of(gate, "left-sending")
    assert entry["status"] == 499
    assert " 499 " in entry["message"]


@contextlib.asynccontextmanager
async def dying(*frames: bytes) -> AsyncIterator[Callable[[dict[str, Any]], None]]:
    """A server that dies over each request, after some frames of HTTP/2; puts it behind Envoy."""

    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(PREFACE))
        kind = -1
        while kind != HEADERS:
            header = await reader.readexactly(9)
            kind = header[3]
            await reader.readexactly(int.from_bytes(header[:3]))
        writer.write(b"".join(frames))
        # Not closed before all of it was read: a reset would overtake the frames.
        writer.write_eof()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(die, "127.0.0.1", 0) as server:
        address = Address(*server.sockets[0].getsockname())

        def put_behind(config: dict[str, Any]) -> None:
            [cluster] = config["static_resources"]["clusters"]
            endpoint = {"endpoint": {"address": address.config}}
            cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [endpoint]

        yield put_behind


async def test_what_a_server_died_over_is_logged(tmp_path: Path) -> None:
    async with dying() as put_behind, edge(tmp_path, put_behind, server_runs=False) as gate:
        await gate.post({}, headers={"x-request-id": "died-rest"})
        with pytest.raises(grpc.aio.AioRpcError):
            await chat_stub(gate).CreateChatCompletion(
                chat_request({}), metadata=(("x-request-id", "died-typed"),)
            )
        rest, typed = await entry_of(gate, "died-rest"), await entry_of(gate, "died-typed")
    assert (rest["level"], rest["status"], rest["path"], rest["flags"]) == (
        *("WARNING", 503, CHAT, "UC"),
    )
    assert rest["message"].startswith(f"POST {CHAT} 503 upstream_reset")
    assert rest["upstream"].startswith("127.0.0.1:")
    assert (typed["level"], typed["grpc_status"], typed["flags"]) == (
        "WARNING",
        "UNAVAILABLE",
        "UC",
    )
    assert "/ovchat.v1.ChatService/CreateChatCompletion UNAVAILABLE " in typed["message"]


async def test_an_answer_that_a_server_died_over_is_logged(tmp_path: Path) -> None:
    body = httpbody_pb2.HttpBody(content_type="text/plain", data=b"x").SerializeToString()
    # :status: 200, content-type: application/grpc
    begun = frame(HEADERS, END_HEADERS, 1, b"\x88\x5f\x10application/grpc")
    async with (
        dying(frame(SETTINGS, 0, 0, b""), begun, frame(DATA, 0, 1, message(body))) as put_behind,
        edge(tmp_path, put_behind, server_runs=False) as gate,
    ):
        with contextlib.suppress(httpx.RemoteProtocolError):
            await gate.post({}, headers={"x-request-id": "died-amid"})
        entry = await entry_of(gate, "died-amid")
    assert (entry["level"], entry["status"], entry["flags"]) == ("WARNING", 200, "UC")
    assert entry["details"].startswith("upstream_reset_after_response_started")


async def test_a_probe_that_finds_no_server_is_not_logged(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False) as gate:
        for path in PROBES:
            assert (await gate.http.get(path, headers={"x-request-id": "probe"})).status_code == 503
        stub: Any = health_pb2_grpc.HealthStub(gate.channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Check(health_pb2.HealthCheckRequest(), metadata=(("x-request-id", "probe"),))
        await not_logged(gate, "probe")


async def test_a_probe_that_goes_wrong_otherwise_is_logged(gate: Edge) -> None:
    await gate.http.post("/health", headers={"x-request-id": "no-probe"})
    assert (await entry_of(gate, "no-probe"))["status"] == 405


async def test_text_has_the_same_message_and_no_json(tmp_path: Path) -> None:
    async with edge(tmp_path, logs=EnvoyLogs(log_format="text")) as gate:
        await gate.http.get("/nope", headers={"x-request-id": "text-1"})
        line = await logged(gate, "text-1")
    time, _, message = line.partition(" ")
    assert re.fullmatch(r"\d\d:\d\d:\d\d", time)
    message, _, identifier = message.partition(" request_id=")
    assert MESSAGE.fullmatch(message)
    assert identifier == "text-1"


async def test_only_faults_are_logged_from_warning_on(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False, logs=EnvoyLogs(level="warning")) as gate:
        await gate.http.get("/nope", headers={"x-request-id": "no-fault"})
        await gate.post({}, headers={"x-request-id": "fault"})
        await logged(gate, "fault")
        assert "no-fault" not in gate.access_log.read_text()


async def test_a_terminal_has_colours(tmp_path: Path) -> None:
    async with edge(tmp_path, server_runs=False, logs=EnvoyLogs("text", colours=True)) as gate:
        await gate.http.get("/nope", headers={"x-request-id": "plain"})
        await gate.post({}, headers={"x-request-id": "yellow"})
        for own in ("plain", "yellow"):
            await logged(gate, own)
        lines = gate.access_log.read_text().splitlines()
    time = r"\x1b\[90m[\d:]{8}\x1b\[0m "
    for code, text in (("0", "GET /nope 404 .* request_id=plain"), ("33", "POST .* 503 .*=yellow")):
        assert [line for line in lines if re.fullmatch(rf"{time}\x1b\[{code}m{text}\x1b\[0m", line)]
