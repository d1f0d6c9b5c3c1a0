"""Envoy's egress listener before providers that do as a test says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from ovchat_server.launch.child import Child, Program
from ovchat_server.launch.egress import add_egress
from ovchat_server.launch.envoy_config import (
    Address,
    Bounds,
    EnvoyFiles,
    Listening,
    Socket,
    envoy_config,
    locate_envoy,
)
from tests.ports import unused_port
from tests.rest.envoy.edge import listening

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

    from ovchat_server.provider_settings import ProviderSettings

FAILURE = "x-ovchat-egress-failure"


@dataclass
class WayOut:
    """A running Envoy; a request's host is a provider's name."""

    client: aiohttp.ClientSession
    rest_port: int
    admin_port: int

    async def post(self, url: str, **kwargs: Any) -> Answer:
        async with self.client.post(url, **kwargs) as answer:
            return Answer(answer.status, answer.headers, await answer.text())


@dataclass(frozen=True)
class Answer:
    """An answer, and Envoy's flags if it is one of its own."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def flags(self) -> set[str]:
        return set(filter(None, self.headers.get(FAILURE, "").split(",")))


@contextlib.asynccontextmanager
async def way_out(*providers: ProviderSettings) -> AsyncIterator[WayOut]:
    """Envoy as `ovchat up` starts it, with providers."""
    rest_port, admin_port = unused_port(), unused_port()
    files, name = EnvoyFiles.locate(), f"ovchat-{secrets.token_hex(8)}"
    config = envoy_config(
        files,
        Listening("127.0.0.1", [rest_port], Address("127.0.0.1", admin_port)),
        [Address("127.0.0.1", unused_port())],
        Bounds(8 << 20),
    )
    add_egress(config, files.egress, Socket(f"@{name}"), providers)
    command = (
        str(locate_envoy(None)),
        *("--config-path", "/dev/fd/0"),
        *("--log-level", "error", "--concurrency", "1", "--disable-hot-restart"),
    )
    program = Program(command, ps_name="ovchat-envoy", text=json.dumps(config))
    connector = aiohttp.UnixConnector(path=f"\0{name}", limit=0)
    async with (
        await Child.spawn("Envoy", program) as envoy,
        aiohttp.ClientSession(connector=connector) as client,
    ):
        await listening(admin_port, envoy)
        yield WayOut(client, rest_port, admin_port)


@dataclass
class Provider:
    """What a provider was asked, and where it is.

    Attributes:
        asked: Is set when it is asked something that it does not answer to the end.
        left: Is set when whoever asked that has gone.
    """

    port: int = 0
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        path = request.path.rpartition("/")[2]
        if path in ("silent", "stalls"):
            try:
                if path == "stalls":
                    begun = web.StreamResponse()
                    await begun.prepare(request)
                    await begun.write(b"data: 1\n\n")
                self.asked.set()
                await asyncio.Event().wait()
            finally:
                self.left.set()
        status = int(path) if path.isdigit() else 200
        return web.Response(status=status, text="hello", headers={FAILURE: "UF", "server": "they"})


@contextlib.asynccontextmanager
async def provider(
    tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Provider]:
    """A provider that says hello, in which it forges Envoy's word of a failure."""
    running = Provider()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", running.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, host, 0, ssl_context=tls).start()
    running.port = runner.addresses[0][1]
    try:
        yield running
    finally:
        await runner.cleanup()
