"""When an engine did what for a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

# Of one request; a request that is preempted more often than this tells nothing new.
MAX_INTERRUPTIONS: Final = 100


class Interruption(StrEnum):
    """What may happen to a request between its admission and its end."""

    PREEMPTED = "preempted"
    RESUMED = "resumed"
    # Its process died, and another one goes on with it.
    RESTARTED = "engine_restarted"


@dataclass(slots=True)
class RequestTimes:
    """The times of a request, whose sequences or texts count as one; in `time.monotonic` seconds.

    All processes of a machine have the same clock. None: it has not happened.

    Attributes:
        queued: It was given to the engine.
        admitted: The first step began that it took part in.
        first_output: The step ended that brought its first tokens or vectors.
        last_output: The same of its last ones so far.
        interruptions: What happened in between, and when.
    """

    queued: float | None = None
    admitted: float | None = None
    first_output: float | None = None
    last_output: float | None = None
    interruptions: list[tuple[Interruption, float]] = field(default_factory=list)

    def forget(self) -> None:
        """Begin anew: what was noted is of a model that did not answer."""
        self.queued = self.admitted = self.first_output = self.last_output = None
        self.interruptions.clear()

    def admit(self, at: float) -> None:
        """Note an admission; the first one counts."""
        if self.admitted is None:
            self.admitted = at

    def output(self, at: float) -> None:
        """Note an output."""
        if self.first_output is None:
            self.first_output = at
        self.last_output = at

    def interrupt(self, what: Interruption, at: float) -> None:
        """Note an interruption."""
        if len(self.interruptions) < MAX_INTERRUPTIONS:
            self.interruptions.append((what, at))

    @property
    def queue_seconds(self) -> float | None:
        """How long it waited for its admission."""
        return _between(self.queued, self.admitted)

    @property
    def prefill_seconds(self) -> float | None:
        """How long its prompt was read: from its admission to the first token."""
        return _between(self.admitted, self.first_output)

    @property
    def decode_seconds(self) -> float | None:
        """How long it took from the first token to the last."""
        return _between(self.first_output, self.last_output)


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else end - begin
