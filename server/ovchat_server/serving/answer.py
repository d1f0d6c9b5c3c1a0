"""Answers as doors read them: whole, or as a stream of chunks."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from ovchat_server.chat.agent_format import TagWriter, with_tags
from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.domain.completion import Chunk, Completion
from ovchat_server.serving.recorded_content import recorded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ovchat_server.domain.chat import CallTags
    from ovchat_server.domain.completion import ChunkChoice, CompletionInfo, Usage
    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.generation import StreamOptions


class Answer(Protocol):
    """The answer to one request, to be read once: whole or as a stream."""

    @property
    def info(self) -> CompletionInfo:
        """What is the same on every chunk; as the next two, known for good from the first one."""
        ...

    @property
    def ignored(self) -> Sequence[str]:
        """The names of parameters that have no effect on the model."""
        ...

    @property
    def unenforced(self) -> Sequence[SchemaPath]:
        """The parts of the request's schemas that are not enforced."""
        ...

    async def admission(self) -> None:
        """Wait until the model works on it, so that it no longer waits in a queue."""
        ...

    async def whole(self) -> Completion:
        """Return the whole answer: the joined chunks of a stream.

        Raises:
            ApiError: The answer failed; see the subclasses.
        """
        ...

    def stream(self, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as it is generated. Closing the generator ends the work on it.

        Raises:
            ApiError: As `whole`: most errors before the first chunk, a crash of the engine later.
        """
        ...


class ChunkedAnswer(ABC):
    """An answer that comes as chunks of its choices, from wherever; see Answer."""

    def __init__(self, info: CompletionInfo, choices: int, call_tags: CallTags | None) -> None:
        """Answer nothing yet.

        Args:
            info: What is the same on every chunk.
            choices: The number of choices.
            call_tags: The tags in which calls are written into the text, too; None for none.
        """
        self._info = info
        self._count = choices
        self._call_tags = call_tags

    @abstractmethod
    def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """Yield the chunks of all choices; called once. Closing it ends the work on the answer.

        Raises:
            ApiError: The answer failed; see the subclasses.
        """

    @abstractmethod
    def usage(self) -> Usage:
        """Count the tokens so far."""

    @abstractmethod
    async def admission(self) -> None:
        """See Answer."""

    @property
    def info(self) -> CompletionInfo:
        """See Answer."""
        return self._info

    @property
    def ignored(self) -> Sequence[str]:
        """See Answer."""
        return ()

    @property
    def unenforced(self) -> Sequence[SchemaPath]:
        """See Answer."""
        return ()

    async def whole(self, *, blocks: bool = False) -> Completion:
        """Return the whole answer; see Answer.

        Args:
            blocks: Whether its choices have their blocks.
        """
        collectors = [ChoiceCollector(blocks=blocks) for _ in range(self._count)]
        async with contextlib.aclosing(recorded(self.chunks())) as chunks:
            async for chunk in chunks:
                collectors[chunk.index].add(chunk)
        choices = [collector.choice() for collector in collectors]
        if self._call_tags:
            choices = [with_tags(choice, self._call_tags) for choice in choices]
        return Completion(self.info, tuple(choices), self.usage(), int(time.time()))

    async def stream(self, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as it is generated; see Answer."""
        tags = self._call_tags
        writers = [TagWriter(tags) for _ in range(self._count)] if tags else []
        async with contextlib.aclosing(recorded(self.chunks())) as chunks:
            async for chunk in chunks:
                if writers:
                    chunk = writers[chunk.index].rewrite(chunk)  # noqa: PLW2901
                yield Chunk(self.info, (chunk,), self.usage() if options.continuous_usage else None)
        if options.include_usage:
            yield Chunk(self.info, (), self.usage(), int(time.time()))


class AnswerInBlocks:
    """An answer whose choices have their blocks, also as a whole; see Answer."""

    def __init__(self, answer: ChunkedAnswer) -> None:
        """Answer with `answer`."""
        self._answer = answer

    @property
    def info(self) -> CompletionInfo:
        """See Answer."""
        return self._answer.info

    @property
    def ignored(self) -> Sequence[str]:
        """See Answer."""
        return self._answer.ignored

    @property
    def unenforced(self) -> Sequence[SchemaPath]:
        """See Answer."""
        return self._answer.unenforced

    async def admission(self) -> None:
        """See Answer."""
        await self._answer.admission()

    async def whole(self) -> Completion:
        """Return the whole answer; see Answer."""
        return await self._answer.whole(blocks=True)

    def stream(self, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as it is generated; see Answer."""
        return self._answer.stream(options)
