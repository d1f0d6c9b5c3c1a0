"""Answers of models that run elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ApiError
from ovchat_server.providers import errors
from ovchat_server.providers.kind import BadAnswerError, ReportedError
from ovchat_server.serving.answer import ChunkedAnswer
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

    from ovchat_server.domain.chat import CallTags
    from ovchat_server.domain.completion import ChunkChoice, CompletionInfo, Usage
    from ovchat_server.providers.egress import ProviderResponse
    from ovchat_server.providers.kind import AnswerReader
    from ovchat_server.providers.provider_client import ProviderClient
    from ovchat_server.serving.deadline import Deadline


# What the provider does after its last event is not waited for any longer.
END_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request in the provider's API, and how its answer is read.

    Attributes:
        path: Where it is posted to.
        body: What is posted.
        ignored: The names of parameters that are left out, because they cannot change the answer.
        reader: Reads the answer.
        streams: Whether the answer comes as events.
        choices: The number of choices.
        call_tags: See ChunkedAnswer.
    """

    path: str
    body: bytes
    ignored: Sequence[str]
    reader: AnswerReader
    streams: bool
    choices: int
    call_tags: CallTags | None = None


class RemoteAnswer(ChunkedAnswer):
    """The answer of a provider, which is asked when the door begins to read."""

    def __init__(
        self, info: CompletionInfo, client: ProviderClient, exchange: Exchange, deadline: Deadline
    ) -> None:
        """Answer with what a provider says.

        Args:
            info: What is the same on every chunk.
            client: Asks the provider.
            exchange: What it is asked, and how its answer is read.
            deadline: When the answer has to be complete.
        """
        super().__init__(info, exchange.choices, exchange.call_tags)
        self._client = client
        self._exchange = exchange
        self._deadline = deadline
        self._record = current_record()
        self._admitted = asyncio.Event()

    @property
    def ignored(self) -> Sequence[str]:
        """See Answer."""
        return self._exchange.ignored

    def usage(self) -> Usage:
        """See ChunkedAnswer."""
        return self._exchange.reader.usage

    async def admission(self) -> None:
        """Wait until the provider has begun to answer."""
        await self._admitted.wait()

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See ChunkedAnswer."""
        exchange, provider = self._exchange, self._client.name
        async with contextlib.AsyncExitStack() as stack:
            async with self._deadline.limit():
                answering = self._client.post(exchange.path, exchange.body)
                response = await stack.enter_async_context(answering)
            stack.enter_context(self._deadline.ends(response))
            stack.enter_context(self._recorded())
            self._admitted.set()
            try:
                async for chunk in self._read(response):
                    if chunk.finish_reason is not None:
                        self._record.finish_reasons.append(chunk.finish_reason)
                    yield chunk
            except BadAnswerError as error:
                raise errors.of_nonsense(provider, str(error)) from error
            except ReportedError as error:
                raise errors.of_report(provider, error.message) from error
            # Some servers send no more than the end of each choice.
            if not exchange.reader.complete:
                raise errors.of_break(provider)

    async def _read(self, response: ProviderResponse) -> AsyncIterator[ChunkChoice]:
        reader = self._exchange.reader
        if not self._exchange.streams:
            for chunk in reader.whole(await response.body()):
                yield chunk
            return
        async with contextlib.aclosing(response.events()) as events:
            async for event in events:
                for chunk in reader.event(event):
                    yield chunk
                if reader.ended:
                    break
            # Until its end is read, the connection cannot serve the next request.
            with contextlib.suppress(TimeoutError, ApiError, BadAnswerError):
                async with asyncio.timeout(END_SECONDS):
                    async for _ in events:
                        pass

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the number of tokens for the access log, however the answer ends."""
        try:
            yield
        finally:
            usage = self.usage()
            self._record.prompt_tokens = usage.prompt_tokens
            self._record.completion_tokens = usage.completion_tokens
