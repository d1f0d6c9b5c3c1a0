"""`ovchat up`: keeps the gRPC servers and Envoy running, and ends them in the right order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
from functools import partial
from typing import TYPE_CHECKING, Self

import click

from ovchat_server.launch.child import Program
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.failed_models import log_failed
from ovchat_server.launch.http import request, request_on_socket
from ovchat_server.launch.liveness import envoy_silent, server_silent
from ovchat_server.launch.metrics_port import announced, listen_for_metrics
from ovchat_server.launch.plan import LaunchPlan
from ovchat_server.launch.private_folder import private_folder
from ovchat_server.launch.ready import (
    envoy_running,
    grpc_serving,
    in_rotation,
    rest_healthy,
    some_served,
)
from ovchat_server.launch.scrape import scrape
from ovchat_server.launch.service import Checks, Service, first
from ovchat_server.launch.stop_messages import QUIET_STOP, log_at_once, log_draining
from ovchat_server.launch.tls import followed
from ovchat_server.metrics.http import serving

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from ovchat_server.launch.plan import Replica
    from ovchat_server.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Envoy has no long work of its own: what it gets after the servers' end is for the last bytes
# to clients that read slowly. So many seconds without a byte, and nobody reads.
_FLUSH_TIMEOUT = 5.0
_CLOSE_TIMEOUT = 1.0
_INTERVAL = 0.02
_ENVOY_TIMEOUT = 2.0
# On top of the drain timeout, which a server keeps itself: it ends its streams and its engines
# after it, and those get 5 seconds.
_SERVER_TIMEOUT = 8.0
# Asked to end at once, a server ends its calls and gives them 2 seconds to send the error.
_STOP_NOW_TIMEOUT = 5.0
_LAST_FLUSH_TIMEOUT = 2.0
# A request counts as done when its last byte is in the connection's buffer, not when it is sent.
_PENDING = "/stats?filter=^http.rest.downstream_(rq_active|cx_tx_bytes_buffered)$"

_ANSWERS = "/stats?filter=^http.rest.downstream_rq_active$"

logger = logging.getLogger(__name__)


async def run_up(settings: Settings, serve_command: Sequence[str]) -> int:
    """Run the servers and Envoy until a signal, restarting what ends by itself.

    Args:
        settings: The settings.
        serve_command: The command of a server, to which each server's own arguments are added.

    Returns:
        The exit code: 0 after a signal, 1 if something could not start at all.
    """
    with contextlib.ExitStack() as stack:
        try:
            plan = LaunchPlan.make(settings, stack.enter_context(private_folder()))
            metrics = listen_for_metrics(settings)
        except LaunchError as error:
            logger.error(str(error))  # noqa: TRY400  a message, for the person who started it
            return 1
        if plan.open_to_all:
            logger.warning(
                "everybody who reaches this machine may call: --api-key-file asks for a key"
            )
        announced(metrics)
        return await _run_with_metrics(plan, serve_command, metrics)


async def _run_with_metrics(
    plan: LaunchPlan, serve_command: Sequence[str], metrics: socket.socket
) -> int:
    sockets = [replica.metrics_socket for replica in plan.replicas]
    exposition = partial(scrape, sockets, plan.admin)
    with Signals() as signals:
        # To the end: what draining does can be seen, too.
        async with serving(exposition, metrics), followed(plan.tls):
            return await _run(plan, serve_command, signals)


class Signals:
    """The signals that end `ovchat up`: the first drains, the second ends calls, another kills."""

    def __init__(self) -> None:
        """Start with no signal received."""
        self._received: asyncio.Queue[int] = asyncio.Queue()

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._received.put_nowait, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ignore the signals from here on, when everything has ended.

        By default another Ctrl-C would end the process with a traceback.
        """
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    async def next(self) -> None:
        """Wait for the next signal."""
        await self._received.get()


async def _run(plan: LaunchPlan, serve_command: Sequence[str], signals: Signals) -> int:
    servers = [
        Service(
            replica.name,
            Program([*serve_command, *replica.arguments]),
            Checks(
                partial(_serving, plan, replica),
                partial(server_silent, replica.target, plan.liveness_timeout),
            ),
            stop_signal=QUIET_STOP if len(plan.replicas) > 1 else signal.SIGTERM,
        )
        for replica in plan.replicas
    ]
    checks = Checks(
        partial(envoy_running, plan.admin), partial(envoy_silent, plan.admin, plan.liveness_timeout)
    )
    envoy = Service("Envoy", plan.envoy, checks)
    services = [*servers, envoy]
    for service in services:
        service.start()
    ends = [service.ended() for service in services]
    try:
        try:
            await first(_serve(plan, services), signals.next(), *ends)
            code = 0
        except LaunchError as error:
            if message := str(error):
                logger.error(message)  # noqa: TRY400  as above
            code = 1
        else:
            await _log_answers(plan, partial(log_draining, timeout=plan.drain_timeout))
        # Closing kills what is left.
        await first(_stop(plan, servers, envoy), _stop_at_signal(plan, servers, envoy, signals))
    finally:
        await asyncio.gather(*(service.close() for service in services))
    return code


async def _serving(plan: LaunchPlan, replica: Replica) -> None:
    """Return once a server serves all models that can be loaded."""
    await first(_all_served(plan, replica), some_served(replica.target, plan.models))


async def _all_served(plan: LaunchPlan, replica: Replica) -> None:
    """Return once a server serves and, if there are several, Envoy sends requests to it."""
    await grpc_serving(replica.target)
    if len(plan.replicas) > 1:
        await in_rotation(plan.admin, replica.upstream.name)


async def _serve(plan: LaunchPlan, services: Sequence[Service]) -> None:
    """Print the banner once all models that can be loaded are served; never return."""
    served: Iterable[str] = plan.models

    async def partly() -> None:
        nonlocal served
        served = await some_served(plan.replicas[0].target, plan.models, log_failed)
        await _started(services)

    await first(_ready(plan, services), partly())
    click.echo(plan.banner(served))
    await asyncio.Event().wait()


async def _ready(plan: LaunchPlan, services: Sequence[Service]) -> None:
    await _started(services)
    if plan.tls:
        await rest_healthy(partial(request_on_socket, "GET", plan.tls.socket.name, "/health"))
    else:
        await rest_healthy(partial(request, "GET", plan.host, plan.rest_port, "/health"))


async def _started(services: Sequence[Service]) -> None:
    for service in services:
        await service.served.wait()


async def _stop(plan: LaunchPlan, servers: Sequence[Service], envoy: Service) -> None:
    """Stop everything without losing an answer that is under way."""
    # First no new requests, or there is always one more to wait for; then the servers, which
    # wait for their answers; Envoy last, because they go through it.
    await _stop_accepting(plan)
    timeout = plan.drain_timeout + _SERVER_TIMEOUT
    await asyncio.gather(*(server.stop(timeout) for server in servers))
    with contextlib.suppress(TimeoutError):
        # However slowly they read, no longer than an answer gets.
        async with asyncio.timeout(plan.drain_timeout + _FLUSH_TIMEOUT):
            await _flushed(plan)
    await envoy.stop(_ENVOY_TIMEOUT)


async def _stop_at_signal(
    plan: LaunchPlan, servers: Sequence[Service], envoy: Service, signals: Signals
) -> None:
    """Stop everything at once at a signal; return when it has stopped, or at another signal."""
    await signals.next()
    await _log_answers(plan, log_at_once)
    await first(_stop_now(plan, servers, envoy), _third(signals))


async def _third(signals: Signals) -> None:
    await signals.next()
    logger.warning("killing what has not ended yet")


async def _stop_now(plan: LaunchPlan, servers: Sequence[Service], envoy: Service) -> None:
    """Stop everything at once; calls under way end with an error."""
    await asyncio.gather(*(server.stop_now(_STOP_NOW_TIMEOUT) for server in servers))
    # The errors reach the clients through Envoy.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_FLUSH_TIMEOUT):
            await _flushed(plan)
    await envoy.stop(_ENVOY_TIMEOUT)


async def _log_answers(plan: LaunchPlan, log: Callable[[int], None]) -> None:
    """Say how many answers are under way; a server that is alone says so itself."""
    if len(plan.replicas) == 1:
        return
    found = None
    with contextlib.suppress(OSError):
        _, stats = await plan.admin.ask("GET", _ANSWERS)
        found = re.search(rb": (\d+)", stats)
    log(int(found[1]) if found else 0)


async def _stop_accepting(plan: LaunchPlan) -> None:
    # An Envoy that does not answer is not accepting either. The first request has it close
    # connections after the answer they carry, the second closes the ports. What is answered still
    # needs the way out.
    with contextlib.suppress(OSError):
        await plan.admin.ask("POST", "/healthcheck/fail")
        await plan.admin.ask("POST", "/drain_listeners?inboundonly")
        # Envoy answers before its workers have closed the port.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await _refused(plan)


async def _refused(plan: LaunchPlan) -> None:
    """Wait until the REST port is closed, then raise the OSError of a refused connection."""
    while True:
        _, writer = await asyncio.open_connection(plan.host, plan.rest_port)
        writer.close()
        await asyncio.sleep(_INTERVAL)


async def _flushed(plan: LaunchPlan) -> None:
    """Return once Envoy has no request under way and nothing to send that a client reads."""
    loop = asyncio.get_running_loop()
    last, since = b"", loop.time()
    with contextlib.suppress(OSError):
        while loop.time() - since < _FLUSH_TIMEOUT:
            _, stats = await plan.admin.ask("GET", _PENDING)
            if not re.search(rb": [1-9]", stats):
                return
            if stats != last:
                last, since = stats, loop.time()
            await asyncio.sleep(_INTERVAL)
