"""Tells of connections at their limit of concurrent calls, where clients let further ones wait."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from typing import TYPE_CHECKING

from ovchat_server.rpc.counted import counted
from ovchat_server.telemetry.paced_log import PacedLog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.middleware import Context

logger = logging.getLogger(__name__)


class StreamLimit:
    """Counts the calls of each connection, and logs the connections that reach the limit."""

    def __init__(self, most: int) -> None:
        """Log at `most` calls: gRPC enforces the limit itself, but does not log it."""
        self._most = most
        self._calls: Counter[str] = Counter()
        self._log = PacedLog(logger, self._text)

    @contextlib.asynccontextmanager
    async def count(
        self,
        context: Context,
        method: str,  # noqa: ARG002  the signature of every middleware
    ) -> AsyncIterator[None]:
        """Count a call for as long as it runs."""
        connection = context.peer()
        with counted(self._calls, connection):
            if self._calls[connection] >= self._most:
                self._log.add()
            yield

    def _text(self, _: int) -> str:
        full = [peer for peer, calls in self._calls.items() if calls >= self._most]
        connections = ", ".join(full) or "a connection"
        return (
            f"{connections} had {self._most} calls under way (max_concurrent_streams): "
            "further ones wait"
        )
