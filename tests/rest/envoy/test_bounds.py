"""How much one client may take: connections, streams of a connection, time to say its request."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING, Any

from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.http2 import DATA, END_STREAM, PING, call, frame, until
from tests.rest.envoy.edge import Edge, edge, manager

if TYPE_CHECKING:
    from pathlib import Path

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, MAX_CONCURRENT_STREAMS = 4, 3
# Length (24 bits), type, flags, stream.
EMPTY_SETTINGS = b"\0\0\0" + struct.pack(">BBI", SETTINGS, 0, 0)


async def test_the_streams_of_one_connection_are_limited(gate: Edge) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(HTTP2_PREFACE + EMPTY_SETTINGS)
    header = await reader.readexactly(9)
    length, kind = int.from_bytes(header[:3]), header[3]
    assert kind == SETTINGS
    payload = await reader.readexactly(length)
    writer.close()
    settings = dict(struct.iter_unpack(">HI", payload))
    # A client that keeps to it, as every library does, waits for a stream to end.
    assert settings[MAX_CONCURRENT_STREAMS] == 1000


async def test_a_connection_too_many_is_closed_and_the_others_live_on(tmp_path: Path) -> None:
    def one_connection(config: dict[str, Any]) -> None:
        monitor = config["overload_manager"]["resource_monitors"][0]["typed_config"]
        monitor["max_active_downstream_connections"] = 1

    async with edge(tmp_path, one_connection) as gate:
        assert (await gate.post({})).status_code == 200
        # It is told nothing: HTTP has no answer before a request.
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            answer = await gate.raw(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert answer == b""
        assert (await gate.post({})).status_code == 200


async def test_bodies_that_never_end_take_no_more_than_envoys_heap(tmp_path: Path) -> None:
    def small_heap(config: dict[str, Any]) -> None:
        heap = config["overload_manager"]["resource_monitors"][1]["typed_config"]
        heap["max_heap_size_bytes"] = 64 << 20

    size = 1 << 20
    async with edge(tmp_path, small_heap) as gate:
        held = []
        # At most twice as much: what is measured is measured four times a second.
        while (answer := await gate.post({})).status_code == 200:
            _, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            writer.write(
                b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n"
                b"content-type: application/json\r\n\r\n" % (size + 1)
            )
            writer.write(b" " * size)
            await writer.drain()
            held.append(writer)
        assert answer.status_code == 503
        for writer in held:
            writer.close()
        while (await gate.post({})).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_body_that_arrives_byte_by_byte_gets_no_more_time(tmp_path: Path) -> None:
    def impatient(config: dict[str, Any]) -> None:
        manager(config)["request_timeout"] = "0.5s"

    async with edge(tmp_path, impatient) as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(
            b"POST /v3/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n"
            b"content-type: application/json\r\nconnection: close\r\n\r\n"
        )
        answer = asyncio.create_task(reader.readuntil(b"}"))
        while not answer.done():
            writer.write(b"{")
            await asyncio.wait([answer], timeout=0.02)
        writer.close()
    assert answer.result().startswith(b"HTTP/1.1 408 ")
    assert b'"code":"timeout"' in answer.result()


def room_for_one(priority: str) -> Any:
    """Change the configuration to one request at once of a priority."""

    def change(config: dict[str, Any]) -> None:
        breakers = config["static_resources"]["clusters"][0]["circuit_breakers"]["thresholds"]
        [threshold] = [each for each in breakers if each["priority"] == priority]
        threshold["max_requests"] = 1

    return change


# Those that the scripted server lacks get its own word for that: 501.
PROBES = {
    "/health": 200,
    "/health/": 200,
    "/v2/health/live": 200,
    "/v2/health/ready": 200,
    "/v2/models/demo/ready": 501,
    "/": 501,
}


async def test_probes_are_answered_while_other_requests_are_too_many(tmp_path: Path) -> None:
    async with edge(tmp_path, room_for_one("DEFAULT")) as gate:
        chat = asyncio.create_task(gate.post({"hang": True}, headers={"x-request-id": "first"}))
        await gate.seen.calls["first"].reached.wait()
        assert (await gate.post({})).status_code == 503
        assert {path: (await gate.http.get(path)).status_code for path in PROBES} == PROBES
        stub: Any = health_pb2_grpc.HealthStub(gate.channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        chat.cancel()


async def test_a_check_whose_request_never_ends_takes_no_room_of_probes(tmp_path: Path) -> None:
    async with edge(tmp_path, room_for_one("HIGH")) as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        begun = call(b"", path=b"/grpc.health.v1.Health/Check").removesuffix(
            frame(DATA, END_STREAM, 1, b"")
        )
        ping = frame(PING, 0, 0, b"12345678")
        writer.write(HTTP2_PREFACE + EMPTY_SETTINGS + begun + ping)
        # Answered after what came before it.
        await until(reader, PING)
        assert (await gate.http.get("/health")).status_code == 200
        writer.close()
