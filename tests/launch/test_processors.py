"""Which processors the processes of `ovchat up` run on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ovchat_server.processors import available, serving
from tests.launch.stack import running

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow


def processors(pid: int) -> Iterator[frozenset[int]]:
    """Of each of its threads."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        yield frozenset(os.sched_getaffinity(int(thread.name)))


async def test_the_first_processor_is_left_to_the_engine(tmp_path: Path) -> None:
    everywhere = available()
    async with running(tmp_path) as stack:
        await stack.answers()

        for kind in ("server", "envoy"):
            assert {*processors(await stack.one(kind))} == {serving(everywhere, 1)}
        # OpenVINO narrows it down for some of its threads, for as long as they compute.
        assert everywhere in {*processors(await stack.one("engine"))}
        stack.process.terminate()
        assert await stack.ends() == 0
