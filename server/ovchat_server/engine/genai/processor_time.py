"""A bound on the processor time that something takes, however busy the machine is."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def at_most(seconds: float, error: Exception) -> Iterator[None]:
    """Raise an error in what runs inside once this process has used so many seconds.

    What runs in a C function goes on until it returns. May only be used in the main thread.

    Args:
        seconds: Processor time of all threads.
        error: What is raised.
    """

    def expired(_number: int, _frame: object) -> NoReturn:
        raise error

    before = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
