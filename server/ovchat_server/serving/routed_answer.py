"""Answers of the first of several models that can give one."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import Usage
from ovchat_server.domain.errors import ApiError
from ovchat_server.serving.answer import ChunkedAnswer
from ovchat_server.serving.completion_info import completion_info
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice, CompletionInfo
    from ovchat_server.domain.field_path import SchemaPath
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.deadline import Deadline
    from ovchat_server.serving.models import GenerativeModel

logger = logging.getLogger(__name__)


class RoutedAnswer(ChunkedAnswer):
    """The answer of the first model that does not fail before anything of it was sent."""

    def __init__(
        self,
        models: Sequence[str],
        find: Callable[[str], GenerativeModel],
        request: ChatRequest | TextRequest,
        deadline: Deadline,
    ) -> None:
        """Ask no model yet.

        Args:
            models: The ids of the models, in the order in which they are asked.
            find: Finds a model.
            request: The request.
            deadline: When the answer has to be complete.
        """
        info = completion_info(request, models[0], None, None, None)
        super().__init__(info, request.choices, request.call_tags)
        self._models = models
        self._find = find
        self._request = request
        self._deadline = deadline
        self._record = current_record()
        # That of the model which is asked now, and whether it is the one that stays.
        self._answer: ChunkedAnswer | None = None
        self._asked = asyncio.Event()
        self._decided = False

    @property
    def info(self) -> CompletionInfo:
        """See Answer. It names the model that answers, once that is decided."""
        return self._answer.info if self._answer else super().info

    @property
    def ignored(self) -> Sequence[str]:
        """See Answer."""
        return self._answer.ignored if self._answer else ()

    @property
    def unenforced(self) -> Sequence[SchemaPath]:
        """See Answer."""
        return self._answer.unenforced if self._answer else ()

    def usage(self) -> Usage:
        """See ChunkedAnswer."""
        return self._answer.usage() if self._answer else Usage(0, 0)

    async def admission(self) -> None:
        """Wait until a model works on it: from then on it is the one that answers."""
        while not self._decided:
            await self._asked.wait()
            self._asked.clear()
            if (answer := self._answer) is not None:
                admitted = asyncio.ensure_future(answer.admission())
                another = asyncio.ensure_future(self._asked.wait())
                try:
                    await asyncio.wait((admitted, another), return_when=asyncio.FIRST_COMPLETED)
                    # It may have failed meanwhile.
                    self._decided |= admitted.done() and answer is self._answer
                finally:
                    admitted.cancel()
                    another.cancel()

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        """See ChunkedAnswer."""
        for model in self._models:
            try:
                async with contextlib.aclosing(self._chunks_of(model)) as chunks:
                    async for chunk in chunks:
                        self._decided = True
                        yield chunk
            except ApiError as error:
                if self._decided or model == self._models[-1]:
                    raise
                self._answer = None
                logger.info("The model %r cannot answer, the next one is asked: %s", model, error)
            else:
                return

    async def _chunks_of(self, model: str) -> AsyncGenerator[ChunkChoice, None]:
        self._record.ask(model)
        async with self._deadline.limit():
            request = dataclasses.replace(self._request, model=model)
            answer = await self._find(model).answer(request, self._deadline)
        self._answer = answer
        self._asked.set()
        async with contextlib.aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk
