"""Threads for work that would hold up the event loop."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class WorkerPool:
    """A bounded pool of threads with a name.

    Work waits for a thread of its own pool only: what may take seconds gets a pool to itself,
    so that it delays nothing else.
    """

    def __init__(self, name: str, threads: int | None = None) -> None:
        """Create the pool; a thread starts when there is work for it.

        Args:
            name: What the threads' names begin with.
            threads: Most threads at once. None: the standard library's default, four more than
                there are processors.
        """
        self._executor = ThreadPoolExecutor(threads, name)

    async def run(self, work: Callable[[], Result], *, in_place: bool = False) -> Result:
        """Run `work` in one of the threads and return its result.

        Cancelled while it waits for a thread, `work` never runs; once it runs, it runs to its
        end and the result is dropped.

        Args:
            work: Called with the caller's context variables. What it raises is raised here.
            in_place: Call it at once in the event loop's thread: it is over sooner than a thread
                would begin it.
        """
        if in_place:
            return work()
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._executor, context.run, work)
