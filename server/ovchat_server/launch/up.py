"""`ovchat up`: start the gRPC server and Envoy, wait, end them in the right order."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
from typing import TYPE_CHECKING, Self

import click

from ovchat_server.launch.child import Child
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.http import request
from ovchat_server.launch.plan import Plan
from ovchat_server.launch.ready import wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from types import TracebackType

    from ovchat_server.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Envoy has no long work of its own: what it gets after the server's end is for the last bytes
# to clients that read slowly.
_FLUSH_TIMEOUT = 5.0
_CLOSE_TIMEOUT = 1.0
_INTERVAL = 0.02
_ENVOY_PATIENCE = 2.0
# On top of the drain timeout, which the server keeps itself: it ends its engines after it.
_SERVER_PATIENCE = 3.0
# A request counts as done when its last byte is in the connection's buffer, not when it is sent.
_PENDING = "/stats?filter=^http.rest.downstream_(rq_active|cx_tx_bytes_buffered)$"


async def run_up(settings: Settings, serve_command: Sequence[str]) -> int:
    """Run the server (`serve_command`) and Envoy until a signal or the end of either.

    Returns the exit code: 0 after a signal, 1 when something could not start or died.
    """
    try:
        plan = Plan.make(settings)
    except LaunchError as error:
        _complain(error)
        return 1
    with Signals() as signals:
        return await _run(plan, serve_command, signals)


class Signals:
    """The signals that end us, counted: the first asks, the second insists."""

    def __init__(self) -> None:
        """Count from none."""
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ignore them from here on: everything has ended.

        By default another Ctrl-C would end the last moments with a traceback.
        """
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _count(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


async def _run(plan: Plan, serve_command: Sequence[str], signals: Signals) -> int:
    async with (
        await Child.spawn("the server", serve_command) as server,
        await Child.spawn("Envoy", plan.envoy_command, "ovchat-envoy", plan.envoy_config) as envoy,
    ):
        try:
            if await _unless_ended(_ready(plan), server, envoy, signals):
                click.echo(plan.banner())
                await _unless_ended(_forever(), server, envoy, signals)
            insist = signals.second
            code = 0
        except LaunchError as error:
            _complain(error)
            insist = signals.first
            code = 1
        # Leaving the context kills what `insist` left alive.
        await _first(_stop(plan, server, envoy), insist.wait())
    return code


async def _ready(plan: Plan) -> None:
    await wait_until_ready(plan.host, grpc_port=plan.grpc_port, rest_port=plan.rest_port)


async def _forever() -> None:
    await asyncio.Event().wait()


async def _unless_ended(
    work: Coroutine[object, object, None], server: Child, envoy: Child, signals: Signals
) -> bool:
    """Do `work` unless a signal comes first; whether it was done.

    Raises LaunchError when a child ends first.
    """
    await _first(work, signals.first.wait(), server.wait(), envoy.wait())
    # The signal first: what asked us to end may have reached a child too.
    if signals.first.is_set():
        return False
    for child in (server, envoy):
        if not child.running:
            msg = f"{child.name} ended by itself ({child.describe_end()})"
            raise LaunchError(msg)
    return True


async def _first(*works: Coroutine[object, object, object]) -> None:
    """Do `works` at once until the first is done or fails, and cancel the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # What they do last, such as closing a channel, comes before what we do next.
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _stop(plan: Plan, server: Child, envoy: Child) -> None:
    """End both, losing no answer that is under way."""
    # First no new requests, or there is always one more to wait for; then the server, which
    # waits for its answers; Envoy last, because they go through it.
    await _stop_accepting(plan)
    await server.terminate(plan.drain_timeout + _SERVER_PATIENCE)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FLUSH_TIMEOUT):
            await _flushed(plan)
    await envoy.terminate(_ENVOY_PATIENCE)


def _complain(error: LaunchError) -> None:
    click.echo(f"ovchat up: {error}", err=True)


async def _stop_accepting(plan: Plan) -> None:
    # An Envoy that does not answer is not accepting either. The first request has it close
    # connections after the answer they carry, the second closes the port.
    with contextlib.suppress(OSError):
        await request("POST", "127.0.0.1", plan.admin_port, "/healthcheck/fail")
        await request("POST", "127.0.0.1", plan.admin_port, "/drain_listeners")
        # Envoy answers before its workers have closed the port.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await _refused(plan)


async def _refused(plan: Plan) -> None:
    """Wait for the REST port to be closed: it ends with the OSError that says so."""
    while True:
        _, writer = await asyncio.open_connection(plan.host, plan.rest_port)
        writer.close()
        await asyncio.sleep(_INTERVAL)


async def _flushed(plan: Plan) -> None:
    """Return once Envoy has no request under way and nothing left to send."""
    with contextlib.suppress(OSError):
        while True:
            _, stats = await request("GET", "127.0.0.1", plan.admin_port, _PENDING)
            if not re.search(rb": [1-9]", stats):
                return
            await asyncio.sleep(_INTERVAL)
