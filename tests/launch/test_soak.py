"""A mixed load for a while: no process takes more and more.

`benchmarks/soak.py` does the same for an hour.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.launch.stack import running
from tests.soak import DEMO, Soak, quarters

if TYPE_CHECKING:
    from pathlib import Path

MINUTES = float(os.environ.get("OVCHAT_SOAK_MINUTES", "1"))
CALLERS = 8
# What comes and goes: a connection, memory that is not given back at once.
CONNECTIONS, SHARE, MIB = 4, 0.05, 1 << 20
# Of engines, whose caches of shapes and of KV blocks fill in their first hours.
ENGINE_SHARE = 0.2


@pytest.mark.slow
@pytest.mark.speed
@pytest.mark.timeout(MINUTES * 60 + 120)
async def test_no_process_takes_more_and_more_under_a_mixed_load(tmp_path: Path) -> None:
    async with running(tmp_path, *DEMO) as stack:
        soak = Soak(stack)
        await soak.run(MINUTES * 60, CALLERS)

    assert soak.wrong == []
    assert min(soak.answered.values()) > 0
    for kind, samples in soak.samples.items():
        *_, before, threads = quarters(samples, "threads")
        assert threads <= before + 1, kind
        *_, before, descriptors = quarters(samples, "descriptors")
        assert descriptors <= before + CONNECTIONS, kind
        *_, before, memory = quarters(samples, "memory")
        share = ENGINE_SHARE if kind == "engine" else SHARE
        assert memory <= before * (1 + share) + 8 * MIB, kind
