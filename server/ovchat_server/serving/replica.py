"""What a server tells of itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import Metric


@dataclass(frozen=True, slots=True)
class Replica:
    """One of the servers behind the same Envoy, or the only one.

    Attributes:
        number: Which of them it is, from 1.
        count: How many there are.
        collect: Tells all metrics as they are now.
        started: When it was started, in seconds since the Unix epoch.
    """

    number: int
    count: int
    collect: Callable[[], Iterable[Metric]]
    started: float = field(default_factory=time.time)
    _began: float = field(default_factory=time.monotonic)

    @property
    def uptime(self) -> float:
        """How many seconds ago it was started, whatever has been done to the clock since."""
        return time.monotonic() - self._began
