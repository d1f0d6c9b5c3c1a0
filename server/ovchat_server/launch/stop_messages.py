"""What the operator is told of the answers that are under way when everything stops."""

from __future__ import annotations

import logging
import signal
from typing import Final

# Stops one of several servers as SIGTERM does, by whoever speaks for all of them.
QUIET_STOP: Final = signal.SIGUSR2

logger = logging.getLogger(__name__)


def log_draining(
    answers: int, timeout: float, level: int = logging.INFO, again: str = "Ctrl-C again"
) -> None:
    """Say what a stop waits for: `answers`, for at most `timeout` seconds, or until `again`."""
    if not answers:
        logger.log(level, "stopping: no answer is under way")
        return
    them = "it" if answers == 1 else "them"
    logger.log(
        level,
        "stopping: %s under way, up to %g s for %s; %s ends %s at once",
        _answers_are(answers),
        timeout,
        them,
        again,
        them,
        extra={"answers": answers},
    )


def log_at_once(answers: int, level: int = logging.INFO) -> None:
    """Say what a second signal does to `answers`."""
    if not answers:
        logger.log(level, "stopping at once: no answer is under way")
        return
    text = "stopping at once: %s cut off"
    logger.log(level, text, _answers_are(answers), extra={"answers": answers})


def log_timed_out(answers: int, timeout: float) -> None:
    """Say that the time of a stop is over, and `answers` are not."""
    text = "%s cut off: not finished within %g s (--drain-timeout)"
    logger.warning(text, _answers_are(answers), timeout, extra={"answers": answers})


def _answers_are(answers: int) -> str:
    return "1 answer is" if answers == 1 else f"{answers} answers are"
