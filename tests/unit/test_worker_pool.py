"""Work in a pool's threads: its name, its caller's context, and what cancelling does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextvars import ContextVar

import pytest

from ovchat_server.serving.worker_pool import WorkerPool

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
