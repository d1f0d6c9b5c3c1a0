"""Answers of models that run elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.providers import errors
from ovchat_server.providers.kind import BadAnswerError, ReportedError
from ovchat_server.serving.answer import ChunkedAnswer
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice, CompletionInfo, Usage
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.provider_client import Exchange
    from ovchat_server.providers.remote_provider import RemoteProvider
    from ovchat_server.serving.deadline import Deadline


class RemoteAnswer(ChunkedAnswer):
    """The answer of a provider, which is asked when the door begins to read."""

    def __init__(
        self,
        info: CompletionInfo,
        provider: RemoteProvider,
        request: ChatRequest | TextRequest,
        exchange: Exchange,
        deadline: Deadline,
    ) -> None:
        """Answer with what a provider says.

        Args:
            info: What is the same on every chunk.
            provider: Who is asked; it is told whether it can be reached.
            request: The request.
            exchange: The same, as the provider is asked.
            deadline: When the answer has to be complete.
        """
        super().__init__(info, request.choices, request.call_tags)
        self._provider = provider
        self._exchange = exchange
        # What has no effect here might have had one there.
        self._accepted = request.accepted
        self._deadline = deadline
        self._record = current_record()
        self._record.response_id = info.id
        self._record.choices = request.choices
        self._admitted = asyncio.Event()
        self._chunks = 0

    @property
    def ignored(self) -> Sequence[str]:
        """See Answer."""
        return (*self._accepted, *self._exchange.ignored)

    def usage(self) -> Usage:
        """See ChunkedAnswer."""
        return self._exchange.usage

    async def admission(self) -> None:
        """Wait until the provider has begun to answer."""
        await self._admitted.wait()

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See ChunkedAnswer."""
        exchange, provider = self._exchange, self._provider.name
        times = self._record.times
        times.queued = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            async with self._deadline.limit():
                try:
                    await stack.enter_async_context(exchange.sent())
                except UnavailableError:
                    self._provider.heard(answers=False)
                    raise
            self._provider.heard(answers=True)
            stack.enter_context(self._deadline.ends(exchange))
            stack.enter_context(self._recorded())
            self._admitted.set()
            times.admit(time.monotonic())
            chunks = await stack.enter_async_context(contextlib.aclosing(exchange.chunks()))
            try:
                async for chunk in chunks:
                    times.output(time.monotonic())
                    self._chunks += 1
                    if chunk.finish_reason is not None:
                        self._record.finish_reasons.append(chunk.finish_reason)
                    yield chunk
                    # Of what has arrived already nothing waits, neither here nor in libraries: a
                    # fast provider would keep the event loop from everybody else for seconds.
                    await asyncio.sleep(0)
            except BadAnswerError as error:
                raise errors.of_nonsense(provider, str(error)) from error
            except ReportedError as error:
                raise errors.of_report(provider, error.message) from error
            if not exchange.complete:
                raise errors.of_break(provider)

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the number of tokens, however the answer ends."""
        try:
            yield
        finally:
            self._record.usage = usage = self.usage()
            self._record.prompt_tokens = usage.prompt_tokens
            # Providers tell it at the end; who leaves before has had a token a chunk at least.
            self._record.completion_tokens = usage.completion_tokens or self._chunks
