"""Work in a pool's threads: its name, its caller's context, turns, and what cancelling does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.errors import OverloadedError
from ovchat_server.domain.identity import Identity
from ovchat_server.serving import worker_pool
from ovchat_server.serving.record import _current, begin_record, current_record
from ovchat_server.serving.worker_pool import WorkerPool

if TYPE_CHECKING:
    from collections.abc import Iterator

caller: ContextVar[str] = ContextVar("caller")


async def test_work_is_run_in_a_thread_of_the_pools_name() -> None:
    name = await WorkerPool("render").run(lambda: threading.current_thread().name)
    assert name.startswith("render")


async def test_work_in_place_is_run_in_the_callers_thread() -> None:
    assert await WorkerPool("render").run(threading.get_ident, in_place=True) == (
        threading.get_ident()
    )


async def test_work_has_its_callers_context() -> None:
    caller.set("me")
    assert await WorkerPool("render").run(caller.get) == "me"


async def test_what_work_raises_is_raised() -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await WorkerPool("render").run(fail)


async def test_work_that_waits_for_a_thread_is_never_run_once_cancelled() -> None:
    pool, began, go_on = WorkerPool("render", 1), asyncio.Event(), threading.Event()
    loop, ran = asyncio.get_running_loop(), threading.Event()

    def occupy() -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait()

    occupying = asyncio.create_task(pool.run(occupy))
    await began.wait()
    waiting = asyncio.create_task(pool.run(ran.set))
    # It has put its work into the queue by then.
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    go_on.set()
    await occupying
    # The pool's only thread has done all that came before this.
    await pool.run(lambda: None)
    assert not ran.is_set()


class Held:
    """Work that goes on when the test says so."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self.began.set)
        self.go_on.wait()


@contextlib.contextmanager
def called_by(name: str) -> Iterator[None]:
    """Tasks that are made inside are this client's."""
    before = current_record()
    begin_record().caller = Identity(name)
    yield
    _current.set(before)


async def test_one_caller_never_has_all_threads() -> None:
    pool, works = WorkerPool("render", 3), [Held() for _ in range(3)]
    with called_by("greedy"):
        tasks = [asyncio.create_task(pool.run(work)) for work in works]
    for work in works[:2]:
        await work.began.wait()
    with called_by("other"):
        assert await asyncio.create_task(pool.run(lambda: "done")) == "done"
    assert not works[2].began.is_set()
    for work in works:
        work.go_on.set()
    await asyncio.gather(*tasks)


async def test_callers_whose_work_waits_take_turns() -> None:
    pool, held, order = WorkerPool("render", 1), Held(), list[str]()
    first = asyncio.create_task(pool.run(held))
    await held.began.wait()
    tasks = []
    for name in ["a", "a", "a", "b", "b", "c"]:
        with called_by(name):
            tasks.append(asyncio.create_task(pool.run(partial(order.append, name))))
    await asyncio.sleep(0)
    held.go_on.set()
    await asyncio.gather(first, *tasks)
    assert order == ["a", "b", "c", "a", "b", "a"]


async def test_too_much_waiting_work_of_one_caller_is_refused_but_not_anothers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_pool, "MAX_WAITING", 2)
    pool, held = WorkerPool("render", 1), Held()
    with called_by("greedy"):
        tasks = [asyncio.create_task(pool.run(held)) for _ in range(3)]
        await held.began.wait()
        with pytest.raises(OverloadedError, match="2 of your requests are waiting") as refused:
            await pool.run(held)
    assert refused.value.retry_after
    with called_by("other"):
        tasks.append(asyncio.create_task(pool.run(lambda: None)))
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    with called_by("greedy"):
        # Cancelled work waits no more.
        tasks.append(asyncio.create_task(pool.run(held)))
    held.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in ended] == [
        *[type(None), asyncio.CancelledError],
        *[type(None)] * 3,
    ]
