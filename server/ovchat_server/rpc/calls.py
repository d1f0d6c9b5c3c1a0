"""The calls in flight: which are admitted, and how they end when the server stops."""

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
    """Keeps track of calls in flight; once closed, it refuses new ones."""

    def __init__(self) -> None:
        """Admit all calls."""
        self._answering: set[asyncio.Task[Any]] = set()
        self._probing: set[asyncio.Task[Any]] = set()
        self._none_left = asyncio.Event()
        self._closed = False
        self._ended = False

    @property
    def under_way(self) -> int:
        """The number of calls in flight, without probes."""
        return len(self._answering)

    def close(self) -> None:
        """Refuse new calls with UNAVAILABLE; calls in flight continue."""
        self._closed = True
        self._note()

    async def finished(self) -> None:
        """Wait until it is closed and no call is in flight, probes aside."""
        await self._none_left.wait()

    def end(self) -> None:
        """End all calls in flight, and probes, with UNAVAILABLE."""
        self._ended = True
        for task in self._answering | self._probing:
            task.cancel()

    @contextlib.asynccontextmanager
    async def admit(
        self,
        context: Context,  # noqa: ARG002  the signature of every middleware
        method: str,
    ) -> AsyncIterator[None]:
        """Admit a call, and count it as in flight while it runs."""
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
                # Cancelled by `end`, not by the caller.
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
