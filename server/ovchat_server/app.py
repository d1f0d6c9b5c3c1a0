"""The composition root: what there is, how it fits together, in which order it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import signal
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.registry import UnknownParserError, choose_dialects
from ovchat_server.chat.prompt import PromptRenderer
from ovchat_server.engine.client import EngineDiedError
from ovchat_server.engine.spec import EngineSpec
from ovchat_server.engine.supervisor import EngineSupervisor
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.ports import authority, check_free, numeric_host
from ovchat_server.rest.rules import RestRules
from ovchat_server.rest.servicer import RestServicer, RestServices, rest_error
from ovchat_server.rpc.health import HealthServicer
from ovchat_server.rpc.server import ServerOptions, Services, create_server, publish_health
from ovchat_server.serving.chat import ChatCompletions
from ovchat_server.serving.model_files import ModelFiles, read_model_files
from ovchat_server.serving.models import ModelRegistry, ServedModel
from ovchat_server.serving.text import TextCompletions
from ovchat_server.serving.tokenization import Tokenization
from ovchat_server.serving.versions import installed_versions
from ovchat_server.settings import DEFAULT_KV_BLOCKS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.chat.dialects.registry import Dialects
    from ovchat_server.settings import ModelSettings, Settings

logger = logging.getLogger(__name__)


class StartError(Exception):
    """The server cannot start; the message says why, for the person who started it."""


class Server:
    """Everything that `ovchat serve` runs."""

    def __init__(self, settings: Settings) -> None:
        """Put the parts together. Starts nothing.

        Raises:
            ModelFilesError: A model's folder cannot be served.
            StartError: A model's settings do not fit it.
        """
        self._settings = settings
        self._changed = asyncio.Event()
        self._engines: dict[str, EngineSupervisor] = {}
        self._models = ModelRegistry([self._served(model) for model in settings.models])
        self._health = HealthServicer()
        timeout = settings.request_timeout or None
        chat = ChatCompletions(self._models, timeout)
        texts = TextCompletions(self._models, timeout)
        tokenization = Tokenization(self._models, timeout)
        versions = installed_versions()
        rest = RestServicer(
            RestServices(chat, texts, tokenization, self._models, versions),
            RestRules(settings.strict_parameters, settings.limits),
        )
        self._server = create_server(
            Services(chat, texts, self._models, tokenization, versions, rest, rest_error),
            self._health,
            ServerOptions(
                max_request_bytes=settings.max_request_bytes,
                max_concurrent_streams=settings.max_concurrent_streams,
                request_timeout=timeout,
                idle_timeout=settings.idle_timeout or None,
                limits=settings.limits,
                api_keys=settings.api_keys,
            ),
        )
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen and load the models; on the way out drain, then end the engines.

        Raises:
            StartError: The port is taken.
        """
        self.port = self._listen()
        # Callers see "loading" instead of a closed port.
        await publish_health(self._health, self._models)
        publisher = asyncio.create_task(self._publish_changes())
        try:
            await self._server.start()
            for engine in self._engines.values():
                engine.start()
            logger.info("listening", extra={"host": self._settings.host, "port": self.port})
            yield
        finally:
            publisher.cancel()
            # First say so, then finish what runs, then take the engines away under it.
            await self._health.enter_graceful_shutdown()
            await self._server.stop(self._settings.drain_timeout)
            await asyncio.gather(*(engine.close() for engine in self._engines.values()))

    async def started(self) -> None:
        """Wait until every model was loaded.

        Raises:
            StartError: One cannot be.
        """
        for name, engine in self._engines.items():
            try:
                await engine.started()
            except EngineDiedError as error:
                raise StartError(f"the model {name!r} cannot be loaded: {error}") from error

    async def stop_now(self) -> None:
        """Cut the draining short: running requests are cancelled."""
        await self._server.stop(None)

    def _listen(self) -> int:
        port = self._settings.grpc_port
        try:
            host = numeric_host(self._settings.host)
            # gRPC's own words for a port that is taken help nobody.
            check_free(host, port, "--grpc-port")
            return self._server.add_insecure_port(authority(host, port))
        except (LaunchError, RuntimeError) as error:
            raise StartError(str(error)) from error

    async def _publish_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await publish_health(self._health, self._models)

    def _served(self, settings: ModelSettings) -> ServedModel:
        files = read_model_files(settings.path)
        engine = EngineSupervisor(_engine_spec(settings, files), self._changed.set)
        self._engines[settings.name] = engine
        return ServedModel(
            id=settings.name,
            fingerprint=_fingerprint(settings, files),
            files=files,
            renderer=PromptRenderer(files.template, files.tokenizer),
            engine=engine,
            dialects=_dialects(settings, files),
            constrains_calls=settings.constrain_tool_calls,
        )


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends at once.

    Raises:
        StartError: The port is taken, or a model cannot be loaded, or its settings do not fit.
        ModelFilesError: A model's folder cannot be served.
    """
    signals: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.put_nowait, number)
    server = Server(settings)
    async with server.running():
        received = await _signal_or_failed_start(signals, server)
        logger.info("stopping", extra={"signal": signal.Signals(received).name})
        impatience = asyncio.create_task(_stop_at_next(signals, server))
    impatience.cancel()


async def _signal_or_failed_start(signals: asyncio.Queue[int], server: Server) -> int:
    """Wait for a signal. A model that cannot be loaded at all is no reason to wait."""
    received = asyncio.create_task(signals.get())
    started = asyncio.create_task(server.started())
    try:
        await asyncio.wait([received, started], return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            started.result()
        return await received
    finally:
        received.cancel()
        started.cancel()


async def _stop_at_next(signals: asyncio.Queue[int], server: Server) -> None:
    await signals.get()
    logger.warning("stopping at once")
    await server.stop_now()


def _dialects(settings: ModelSettings, files: ModelFiles) -> Dialects:
    try:
        return choose_dialects(
            files.template.source, settings.tool_parser, settings.reasoning_parser
        )
    except UnknownParserError as error:
        raise StartError(f"the model {settings.name!r}: {error}") from error


def _engine_spec(settings: ModelSettings, files: ModelFiles) -> EngineSpec:
    blocks = settings.kv_blocks
    if blocks is None and settings.kv_cache_gb is None:
        blocks = DEFAULT_KV_BLOCKS
    return EngineSpec(
        name=settings.name,
        path=str(settings.path.resolve()),
        device=settings.device,
        kv_blocks=blocks,
        kv_cache_gb=settings.kv_cache_gb or 0,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        context_length=files.context_length,
        end_tokens=files.end_tokens,
        properties=settings.properties,
        grammar_timeout=settings.grammar_timeout,
        step_timeout=settings.step_timeout,
        max_queue=settings.max_queue,
        max_queue_wait=settings.max_queue_wait,
    )


def _fingerprint(settings: ModelSettings, files: ModelFiles) -> str:
    """Of all that may change answers: the files, how the engine runs them, how they are read."""
    how = (
        f"{settings.device}:{settings.max_num_batched_tokens}:"
        f"{settings.tool_parser}:{settings.reasoning_parser}:"
        f"{settings.constrain_tool_calls}:{sorted(settings.properties.items())}"
    )
    return "fp_" + hashlib.sha256(f"{files.digest}:{how}".encode()).hexdigest()[:12]
