"""How long the server works on one request."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ovchat_server.api.errors import DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from ovchat_server.engine.contract.generation import Generation


class Deadline:
    """When the work on one request ends, whether it is done or not."""

    def __init__(self, seconds: float | None) -> None:
        """Begin to count; None: it may take as long as it takes."""
        self._seconds = seconds
        self._when = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @contextlib.asynccontextmanager
    async def limit(self) -> AsyncGenerator[None, None]:
        """Some of the work. Not to be held while others do theirs, as across a yield.

        Raises:
            DeadlineExceededError: It was not done in time.
        """
        # What need not wait is never interrupted, so it has to be asked.
        self._check()
        try:
            async with asyncio.timeout_at(self._when):
                yield
        except TimeoutError as error:
            raise self._exceeded() from error

    @contextlib.contextmanager
    def ends(self, generation: Generation) -> Iterator[None]:
        """Have a generation fail that is not complete in time.

        One timer for all of it: one for each of its tokens cost a tenth of what the server does
        for them.
        """
        if self._when is None:
            yield
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_at(self._when, lambda: generation.fail(self._exceeded()))
        try:
            yield
        finally:
            timer.cancel()

    def _check(self) -> None:
        if self._when is not None and asyncio.get_running_loop().time() >= self._when:
            raise self._exceeded()

    def _exceeded(self) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"The answer took longer than the {self._seconds:g} seconds that this server gives "
            "a request. Ask for fewer tokens, or try again when it is less busy."
        )
