"""What an operator is told when a model refuses requests: what is full, by the options' names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ovchat_server.telemetry.paced_log import PacedLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.models import EngineLoad

logger = logging.getLogger(__name__)


class OverloadLog:
    """Logs refusals of a model, at most once a second."""

    def __init__(self, model: str, load: Callable[[], EngineLoad | None]) -> None:
        """Log nothing yet.

        Args:
            model: Its id.
            load: Returns how full its engine is; None: there is none.
        """
        self._model = model
        self._load = load
        self._full = ""
        self._log = PacedLog(logger, self._text)

    def refused(self, full: str) -> None:
        """Note that a request was refused, and what was full."""
        self._full = full
        self._log.add()

    def close(self) -> None:
        """Log what is due."""
        self._log.close()

    def _text(self, refused: int) -> str:
        text = f"{self._model} is overloaded: {self._full}"
        if load := self._load():
            text += f", {load.running_requests} run"
            # Not every engine has a KV cache.
            if total := load.total_kv_blocks:
                text += f", {load.used_kv_blocks} of {total} KV blocks are taken (kv_blocks)"
        return f"{text}; refused: {refused}"
