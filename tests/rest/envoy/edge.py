"""Envoy before the scripted server, and what to ask it with."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest

from ovchat.v1 import chat_pb2, chat_service_pb2_grpc
from ovchat_server.launch.child import Child, Program
from ovchat_server.launch.cors import allow_origins
from ovchat_server.launch.envoy_config import (
    Address,
    Bounds,
    EnvoyFiles,
    Listening,
    envoy_config,
    locate_envoy,
)
from ovchat_server.launch.envoy_logs import JSON_LOGS, EnvoyLogs
from ovchat_server.launch.http import request as plain_request
from tests.ports import unused_port
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import MAX_BYTES, Rest, Seen, scripted_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from ovchat_server.launch.envoy_config import Upstream


@dataclass
class Edge:
    """A running Envoy, the server behind it and clients before it."""

    port: int
    seen: Seen
    rest: Rest
    http: httpx.AsyncClient
    channel: grpc.aio.Channel
    access_log: Path
    envoy: Child

    async def post(self, script: dict[str, Any], path: str = CHAT, **kwargs: Any) -> httpx.Response:
        return await self.http.post(path, json=script, **kwargs)

    async def raw(self, text: bytes) -> bytes:
        """Send bytes as they are; what comes back until the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text)
        answer = await reader.read()
        writer.close()
        return answer


def unchanged(config: dict[str, Any]) -> None:
    """Leave the configuration as it is."""


def manager(config: dict[str, Any]) -> dict[str, Any]:
    filters = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"]
    typed: dict[str, Any] = filters[0]["typed_config"]
    return typed


def open_to(*origins: str) -> Callable[[dict[str, Any]], None]:
    """Change the configuration so that pages of these origins may call."""
    return lambda config: allow_origins(manager(config), EnvoyFiles.locate().cors, origins)


@contextlib.asynccontextmanager
async def edge(
    directory: Path,
    change: Callable[[dict[str, Any]], None] = unchanged,
    *,
    server_runs: bool = True,
    others: Sequence[Upstream] = (),
    logs: EnvoyLogs = JSON_LOGS,
) -> AsyncIterator[Edge]:
    """Envoy before one scripted server, and `others` beside it."""
    seen = Seen()
    rest = Rest(seen)
    rest_port, admin_port = unused_port(), unused_port()
    server = scripted_server(rest)
    grpc_port = server.add_insecure_port("127.0.0.1:0") if server_runs else unused_port()
    config = envoy_config(
        EnvoyFiles.locate(),
        Listening("127.0.0.1", [rest_port], Address("127.0.0.1", admin_port)),
        [Address("127.0.0.1", grpc_port), *others],
        Bounds(MAX_BYTES),
        logs=logs,
    )
    access_log = directory / f"access-{rest_port}.log"
    logger = manager(config)["access_log"][0]
    logger["name"] = "envoy.access_loggers.file"
    logger["typed_config"]["@type"] = (
        "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
    )
    logger["typed_config"]["path"] = str(access_log)
    # How long Envoy waits after its last word for a client to hang up first.
    manager(config)["delayed_close_timeout"] = "0.1s"
    change(config)
    command = (
        str(locate_envoy(None)),
        *("--config-path", "/dev/fd/0"),
        *("--log-level", "error", "--concurrency", "1", "--disable-hot-restart"),
        *("--file-flush-interval-msec", "10"),
    )
    program = Program(command, ps_name="ovchat-envoy", text=json.dumps(config))
    if server_runs:
        await server.start()
    try:
        async with (
            await Child.spawn("Envoy", program) as envoy,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{rest_port}", timeout=None) as http,
            grpc.aio.insecure_channel(f"127.0.0.1:{rest_port}") as channel,
        ):
            await listening(admin_port, envoy)
            yield Edge(rest_port, seen, rest, http, channel, access_log, envoy)
    finally:
        await server.stop(None)


async def listening(admin_port: int, envoy: Child) -> None:
    while envoy.running:
        with contextlib.suppress(OSError):
            if (await plain_request("GET", "127.0.0.1", admin_port, "/ready"))[0] == 200:
                return
        await asyncio.sleep(0.02)
    pytest.fail("Envoy did not start")


def request_for(path: str, script: dict[str, Any]) -> dict[str, Any]:
    return {"user": json.dumps(script)} if path.startswith("/ovchat") else script


def assert_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check the OpenAI shape of an error; its error object."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["param"] is None
    assert error["type"] == ("invalid_request_error" if status < 500 else "server_error")
    assert error["message"]
    assert answer.headers["server"] == "ovchat"
    assert not [name for name in answer.headers if name.startswith(("x-envoy", "grpc-"))]
    return error


def body_of(answer: bytes) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    return error


def chat_stub(gate: Edge) -> Any:
    return chat_service_pb2_grpc.ChatServiceStub(gate.channel)


def chat_request(script: dict[str, Any]) -> chat_pb2.CreateChatCompletionRequest:
    return chat_pb2.CreateChatCompletionRequest(model="demo", user=json.dumps(script))


async def logged(gate: Edge, request_id: str) -> str:
    """The log line of a request; Envoy writes it soon after the answer."""
    while True:
        for line in gate.access_log.read_text().splitlines():
            if request_id in line:
                return line
        await asyncio.sleep(0.01)
