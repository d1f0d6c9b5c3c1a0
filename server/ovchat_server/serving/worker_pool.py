"""Threads for work that would block the event loop."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class WorkerPool:
    """A bounded pool of named threads.

    Work that may take seconds gets a pool of its own, so that it delays nothing else.
    """

    def __init__(self, name: str, threads: int | None = None) -> None:
        """Create the pool; a thread starts when there is work for it.

        Args:
            name: The prefix of the threads' names.
            threads: The maximum number of threads. None for the standard library's default: four
                more than there are processors.
        """
        self._executor = ThreadPoolExecutor(threads, name)

    async def run(self, work: Callable[[], Result], *, in_place: bool = False) -> Result:
        """Run `work` in one of the threads and return its result.

        If it is cancelled before a thread is free, `work` never runs; after that, it runs to its
        end and its result is dropped.

        Args:
            work: Called with the caller's context variables; its exceptions are raised here.
            in_place: Call it directly in the event loop's thread, because it takes less time than
                handing it to a thread.
        """
        if in_place:
            return work()
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._executor, context.run, work)
