"""Threads for work that would block the event loop, which callers take in turns."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ovchat_server.domain.errors import OverloadedError
from ovchat_server.serving.caller import current_caller

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")

# Of one caller. As many streams has a connection.
MAX_WAITING: Final = 1000


class _Item(NamedTuple):
    work: Callable[[], Any]
    done: Future[Any]


class WorkerPool:
    """A bounded pool of named threads.

    Work that may take seconds gets a pool of its own, so that it delays nothing else. Callers whose
    work waits take turns, and none has all threads at once: one is left for the work of others.
    """

    def __init__(self, name: str, threads: int | None = None) -> None:
        """Create the pool; a thread starts when there is work for it.

        Args:
            name: The prefix of the threads' names.
            threads: The maximum number of threads. None for the standard library's default: four
                more than there are processors.
        """
        threads = threads or min(32, (os.cpu_count() or 1) + 4)
        self._executor = ThreadPoolExecutor(threads, name)
        self._most = max(threads - 1, 1)
        self._lock = threading.Lock()
        # By caller; the next one is first.
        self._waiting: dict[str, deque[_Item]] = {}
        self._running: Counter[str] = Counter()

    async def run(self, work: Callable[[], Result], *, in_place: bool = False) -> Result:
        """Run `work` in one of the threads and return its result.

        If it is cancelled before it is its turn, `work` never runs; after that, it runs to its
        end and its result is dropped.

        Args:
            work: Called with the caller's context variables; its exceptions are raised here.
            in_place: Call it directly in the event loop's thread, because it takes less time than
                handing it to a thread.

        Raises:
            OverloadedError: Too much of the caller's work waits.
        """
        if in_place:
            return work()
        caller, context = current_caller(0).client, contextvars.copy_context()
        done: Future[Result] = Future()
        item = _Item(lambda: context.run(work), done)
        with self._lock:
            waiting = self._waiting.setdefault(caller, deque())
            if len(waiting) >= MAX_WAITING:
                message = f"{MAX_WAITING} of your requests are waiting already. Try again later."
                raise OverloadedError(message, retry_after=1)
            waiting.append(item)
        self._executor.submit(self._work)
        try:
            return await asyncio.wrap_future(done)
        except asyncio.CancelledError:
            if done.cancel():
                self._drop(caller, item)
            raise

    def _work(self) -> None:
        """Do what waits; runs in a thread, as often as there was work."""
        while taken := self._take():
            caller, item = taken
            try:
                if item.done.set_running_or_notify_cancel():
                    _finish(item)
            finally:
                with self._lock:
                    self._running[caller] -= 1
                    self._running += Counter()

    def _take(self) -> tuple[str, _Item] | None:
        """Return the next work, of a caller that may have another thread; None: there is none."""
        with self._lock:
            for caller in self._waiting:
                if self._running[caller] < self._most:
                    break
            else:
                return None
            waiting = self._waiting.pop(caller)
            item = waiting.popleft()
            if waiting:
                self._waiting[caller] = waiting
            self._running[caller] += 1
            return caller, item

    def _drop(self, caller: str, item: _Item) -> None:
        """Forget work that was cancelled, if it waits."""
        with self._lock:
            waiting = self._waiting.get(caller, deque())
            if item in waiting:
                waiting.remove(item)
            if not waiting:
                self._waiting.pop(caller, None)


def _finish(item: _Item) -> None:
    try:
        result = item.work()
    except BaseException as error:  # noqa: BLE001  raised where the result is awaited
        item.done.set_exception(error)
    else:
        item.done.set_result(result)
