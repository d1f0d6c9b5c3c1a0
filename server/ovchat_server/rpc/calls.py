"""The calls under way: which are let in, and how they end when the server does."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.rpc.probes import Exempt, exempt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.middleware import Context


class Calls:
    """Knows the calls under way; closed, it lets no new ones in."""

    def __init__(self) -> None:
        """Let everybody in."""
        self._answering: set[asyncio.Task[Any]] = set()
        self._probing: set[asyncio.Task[Any]] = set()
        self._none_left = asyncio.Event()
        self._closed = False
        self._ended = False

    @property
    def under_way(self) -> int:
        """How many are under way. Probes do not count."""
        return len(self._answering)

    def close(self) -> None:
        """Refuse new calls, as UNAVAILABLE with a hint; those under way go on."""
        self._closed = True
        self._note()

    async def finished(self) -> None:
        """Wait until no call is under way, once closed. Probes do not count."""
        await self._none_left.wait()

    def end(self) -> None:
        """End the calls under way now, and the probes: with UNAVAILABLE."""
        self._ended = True
        for task in self._answering | self._probing:
            task.cancel()

    @contextlib.asynccontextmanager
    async def admit(
        self,
        context: Context,  # noqa: ARG002  the signature of every middleware
        method: str,
    ) -> AsyncIterator[None]:
        """Let one call in; for as long as it runs it is under way."""
        calls = self._probing if exempt(method, Exempt.DRAIN) else self._answering
        if self._ended or (self._closed and calls is self._answering):
            raise _stopping()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  every RPC runs in one
        calls.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self._ended:
                # Ours, and not the caller's going away.
                raise _stopping() from None
            raise
        finally:
            calls.remove(task)
            self._note()

    def _note(self) -> None:
        if self._closed and not self._answering:
            self._none_left.set()


def _stopping() -> UnavailableError:
    return UnavailableError("The server is stopping. Try again shortly.", retry_after=1)
