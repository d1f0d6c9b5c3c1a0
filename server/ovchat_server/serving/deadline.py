"""The deadline of a request: how long the server works on it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

from ovchat_server.domain.errors import DeadlineExceededError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from ovchat_server.domain.errors import ApiError


class Stream(Protocol):
    """Something that is read until it ends."""

    def fail(self, error: ApiError) -> None:
        """Have whoever reads it get an error."""
        ...


class Deadline:
    """The time by which a request has to be answered."""

    def __init__(self, seconds: float | None) -> None:
        """Set the deadline `seconds` from now; None: there is none."""
        self._seconds = seconds
        self._when = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @contextlib.asynccontextmanager
    async def limit(self) -> AsyncGenerator[None, None]:
        """Cancel the work inside at the deadline.

        Not to be entered across a `yield`: it would cancel what the generator's reader awaits.

        Raises:
            DeadlineExceededError: The work was not done in time.
        """
        # Work that never waits is never cancelled, so the time is checked first.
        self._check()
        try:
            async with asyncio.timeout_at(self._when):
                yield
        except TimeoutError as error:
            raise self._exceeded() from error

    @contextlib.contextmanager
    def ends(self, stream: Stream) -> Iterator[None]:
        """Fail a stream at the deadline, unless the context was left before.

        It uses one timer for the whole stream: one for each token would take a tenth of all the
        time that the server spends on it.
        """
        if self._when is None:
            yield
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_at(self._when, lambda: stream.fail(self._exceeded()))
        try:
            yield
        finally:
            timer.cancel()

    def _check(self) -> None:
        if self._when is not None and asyncio.get_running_loop().time() >= self._when:
            raise self._exceeded()

    def _exceeded(self) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"The answer took longer than {self._seconds:g} seconds, this server's limit for a "
            "request. Ask for fewer tokens, or try again when the server is less busy."
        )
