"""The composition root: builds all parts, and starts and stops them in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.identity import KeyRing
from ovchat_server.endpoints import REST_SERVICE, endpoints, rest_apis, typed_services
from ovchat_server.keys.watch import watch_keys
from ovchat_server.kinds.base import EngineHost
from ovchat_server.kinds.rerank import Rerank
from ovchat_server.kinds.text_embedding import TextEmbedding
from ovchat_server.kinds.text_generation import TextGeneration
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.metrics_port import announced, listen_for_metrics
from ovchat_server.launch.ports import (
    authority,
    check_free,
    check_socket,
    log_listening,
    numeric_host,
)
from ovchat_server.launch.stop_messages import (
    QUIET_STOP,
    log_at_once,
    log_draining,
    log_timed_out,
)
from ovchat_server.metrics.http import serving as serving_metrics
from ovchat_server.metrics.loop_lag import measure_lag
from ovchat_server.metrics.server_metrics import ServerMetrics
from ovchat_server.open_files import connections
from ovchat_server.processors import available, serving
from ovchat_server.providers.providers import Providers
from ovchat_server.rest.door import RestDoor
from ovchat_server.rest.openai.codec import encode_error
from ovchat_server.rest.request_body import BodyReader
from ovchat_server.rpc.calls import Calls
from ovchat_server.rpc.health import HealthServicer
from ovchat_server.rpc.server import Served, ServerOptions, create_server, publish_health
from ovchat_server.rpc.tls import server_credentials
from ovchat_server.served_models import built_models, registered_models
from ovchat_server.serving.rate_limits import RateLimits
from ovchat_server.serving_parts import ServingParts
from ovchat_server.settings import socket_target
from ovchat_server.start_error import StartError
from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.files import CurrentTls
from ovchat_server.tracing.setup import tracing

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Collection, Sequence

    from ovchat_server.kinds.base import ModelKind
    from ovchat_server.settings import Settings

# Seconds for which a stopping server still answers new calls with UNAVAILABLE, until health checks
# have routed callers elsewhere: once it stops listening, gRPC cancels calls that arrive.
NOTICE = 0.5
# Seconds that calls get to report their errors once their engines are gone. It is bounded, because
# some callers do not read.
END_TIMEOUT = 2.0
# Seconds to flush the last bytes after that.
FLUSH_TIMEOUT = 0.5

logger = logging.getLogger(__name__)


class Server:
    """Everything that `ovchat serve` runs."""

    def __init__(
        self,
        settings: Settings,
        processors: Collection[int] = (),
        kinds: Sequence[ModelKind] = (),
    ) -> None:
        """Build all parts; start nothing.

        Args:
            settings: What to serve, and how.
            processors: The processors that engines may run on; empty for those of this process.
            kinds: Further kinds of models; the first one that recognises a folder builds its model.

        Raises:
            ModelFilesError: A model's folder cannot be served.
            StartError: A model's settings do not fit it, or those of traces are wrong.
        """
        self._settings = settings
        self._changed = asyncio.Event()
        self._keys = KeyRing(settings.api_keys)
        parts = ServingParts.of(settings)
        self._metrics = ServerMetrics(settings.server_number)
        host = EngineHost(tuple(processors), self._changed.set, self._metrics, settings.replicas)
        all_kinds: Sequence[ModelKind] = (
            TextGeneration(parts.pipeline),
            TextEmbedding(),
            Rerank(),
            *kinds,
        )
        built = built_models(settings.models, all_kinds, host)
        self._metrics.served = [item.model for item in built]
        self._engines = {item.model.id: item.engine for item in built}
        self._providers = Providers.of(settings.providers, settings.egress, parts.workers)
        self._models = registered_models(settings, built, self._providers, self._changed.set)
        self._health = HealthServicer()
        self._calls = Calls()
        self._at_once = asyncio.Event()
        # With several servers `ovchat up` logs for all of them, unless one alone is stopped.
        self._level = logging.DEBUG if settings.replicas > 1 else logging.INFO
        services = parts.services(self._models, self._metrics.collect)
        served = endpoints(
            services, settings.limits, keep_billing_header=settings.keep_billing_header
        )
        rest = RestDoor(
            rest_apis(served),
            BodyReader(settings.strict_parameters, settings.limits, services.threads),
            default_errors=encode_error,
        )
        self._served = Served(typed_services(served), REST_SERVICE, rest, rest.error)
        # Last: it has a thread from now on, which ends with `running`.
        self._tracing = tracing(settings)
        self._server = create_server(
            self._served,
            self._health,
            self._calls,
            ServerOptions(
                max_request_bytes=settings.max_request_bytes,
                max_concurrent_streams=settings.max_concurrent_streams,
                request_timeout=settings.request_timeout or None,
                idle_timeout=settings.idle_timeout or None,
                limits=settings.limits,
                keys=self._keys,
                rate_limits=RateLimits(settings.replicas),
                client_certificates=settings.names_certificates,
                max_connections=connections(),
                observers=[self._metrics, *self._tracing],
            ),
        )
        self.port = 0
        self.metrics_url: str | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen and load the models; on exit, drain calls and then end the engines.

        Raises:
            StartError: A port is taken.
        """
        async with contextlib.AsyncExitStack() as stack:
            # Also if it cannot start.
            stack.push_async_callback(self._close_traces)
            metrics = self._listen()
            # Not in the event loop, whose streams would wait for the text.
            exposition = partial(asyncio.to_thread, self._metrics.exposition)
            # To the end: what draining does can be seen, too.
            await stack.enter_async_context(serving_metrics(exposition, metrics))
            # Listen before the models are loaded: callers see "loading" instead of a closed port.
            publish_health(self._health, self._models, self._served)
            background = [
                asyncio.create_task(self._publish_changes()),
                asyncio.create_task(measure_lag(self._metrics.lag)),
            ]
            if key_file := self._settings.api_key_file:
                background.append(asyncio.create_task(watch_keys(key_file, self._keys)))
            try:
                await self._server.start()
                for engine in self._engines.values():
                    engine.start()
                self._providers.start()
                log_listening(self._settings, self.port, self._level)
                self.metrics_url = announced(metrics)
                yield
            finally:
                for task in background:
                    task.cancel()
                await self._drain()

    def speak(self) -> None:
        """Log what stopping waits for, although this is one of several servers."""
        self._level = logging.INFO

    def stop_now(self) -> None:
        """Stop draining and end running requests."""
        log_at_once(self._calls.under_way, self._level)
        self._at_once.set()

    async def _drain(self) -> None:
        """Refuse new calls, let running ones finish or end them, and end the engines."""
        timeout = self._settings.drain_timeout
        again = "Ctrl-C again" if self._settings.replicas == 1 else "another SIGTERM"
        log_draining(self._calls.under_way, timeout, self._level, again)
        self._calls.close()
        finished = asyncio.create_task(self._finish())
        at_once = asyncio.create_task(self._at_once.wait())
        first = asyncio.FIRST_COMPLETED
        await asyncio.wait([finished, at_once], timeout=timeout, return_when=first)
        if self._calls.under_way and not self._at_once.is_set():
            log_timed_out(self._calls.under_way, timeout)
        # Close the engines first: calls that still wait for tokens fail, and each stream ends with
        # an error in its API's form. Only then cut off what is left, such as health watchers.
        closing = asyncio.create_task(self._close_engines())
        await asyncio.wait([finished], timeout=END_TIMEOUT)
        self._calls.end()
        await self._server.stop(FLUSH_TIMEOUT)
        # All calls are over, and with them their spans.
        sent = asyncio.create_task(self._close_traces())
        # An engine may hang, but it ends with this process at the latest.
        await asyncio.wait([closing, at_once], return_when=first)
        for task in (finished, at_once, closing):
            task.cancel()
        await sent

    async def _finish(self) -> None:
        self._health.stop()
        await asyncio.sleep(NOTICE)
        await self._calls.finished()

    async def _close_traces(self) -> None:
        closing, self._tracing = self._tracing, ()
        await asyncio.gather(*(traces.close() for traces in closing))

    async def _close_engines(self) -> None:
        engines = (*self._engines.values(), self._providers)
        await asyncio.gather(*(engine.close() for engine in engines))

    def _listen(self) -> socket.socket:
        """Listen for calls, and for scrapes on the socket that is returned."""
        try:
            self.port = self._listen_for_calls()
            return listen_for_metrics(self._settings)
        except (LaunchError, RuntimeError, TlsError) as error:
            raise StartError(str(error)) from error

    def _listen_for_calls(self) -> int:
        port, socket = self._settings.grpc_port, self._settings.grpc_socket
        if (envoys := self._settings.envoy_socket) is not None:
            self._server.add_insecure_port(socket_target(envoys))
            if self._settings.replicas > 1:
                # Envoy has the port, before all of them.
                return 0
        if socket is not None:
            check_socket(socket)
            return self._server.add_insecure_port(socket_target(socket))
        host = numeric_host(self._settings.host)
        # Checked first, because gRPC's own error does not say that the port is in use.
        check_free(host, port, "--grpc-port")
        if (tls := self._settings.tls) is None:
            return self._server.add_insecure_port(authority(host, port))
        credentials = server_credentials(CurrentTls(tls, "The gRPC port"))
        return self._server.add_secure_port(authority(host, port), credentials)

    async def _publish_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            publish_health(self._health, self._models, self._served)


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends at once.

    A model whose engine fails to start is not served; its state tells the reason, and it is tried
    again unless the failure is permanent. The other models are served meanwhile.

    Raises:
        StartError: The port is taken, or a model's settings do not fit.
        ModelFilesError: A model's folder cannot be served.
    """
    processors = available()
    # Before any thread is started: threads inherit the affinity.
    os.sched_setaffinity(0, serving(processors, settings.replicas, engines=bool(settings.models)))
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, QUIET_STOP):
        loop.add_signal_handler(number, signals.put_nowait, number)
    server = Server(settings, processors)
    async with server.running():
        # Freeze the objects that stay for good: each full collection would stop the event loop to
        # look through them.
        gc.collect()
        gc.freeze()
        if await signals.get() == signal.SIGTERM:
            server.speak()
        impatience = asyncio.create_task(_stop_at_next(signals, server))
    impatience.cancel()


async def _stop_at_next(signals: asyncio.Queue[int], server: Server) -> None:
    await signals.get()
    server.stop_now()
