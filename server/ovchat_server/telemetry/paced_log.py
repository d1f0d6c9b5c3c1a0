"""A warning that would be written for every one of many requests."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

INTERVAL = 1.0


class PacedLog:
    """Writes a warning at once, and then at most once a second."""

    def __init__(self, logger: logging.Logger, text: Callable[[int], str]) -> None:
        """Write nothing yet.

        Args:
            logger: Writes it.
            text: Returns the warning, given how often it was due since the last one.
        """
        self._logger = logger
        self._text = text
        self._due = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self) -> None:
        """Write the warning: now, or with others of this second."""
        self._due += 1
        if self._timer is None:
            self._write()

    def close(self) -> None:
        """Write what is due, and nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._write()
        if self._timer is not None:
            self._timer.cancel()

    def _write(self) -> None:
        self._timer = None
        if self._due:
            due, self._due = self._due, 0
            # It is of many requests, so not with the id of the one that is served just now.
            Context().run(self._logger.warning, "%s", self._text(due))
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._write)
