"""Sets of tools and schemas come and go: what they leave behind is bounded.

`benchmarks/grammar_memory.py` shows the same for 10,000.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.genai.grammar_compiler import MAX_BYTES
from ovchat_server.engine.genai.grammar_process import MAX_CACHED_BYTES
from tests.grammar_load import OPTIONS, PROCESSES, memory
from tests.launch.stack import running

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
# Unbounded, so many would take more than 250 MiB of the engine, and of the grammar process.
SETS, EVERY = 4000, 1000
# What grammars may hold, and some that is free but not returned yet.
GROWTH = {
    "server": 8 * MIB,
    "engine": MAX_BYTES + 32 * MIB,
    "grammars": MAX_CACHED_BYTES + 32 * MIB,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_process_grows_with_every_set_of_tools(tmp_path: Path) -> None:
    async with running(tmp_path, *OPTIONS) as stack:
        rows = [row async for row in memory(stack, SETS, EVERY)]

    for kind in PROCESSES:
        taken = [row[kind] for row in rows]
        assert max(taken) - min(taken) < GROWTH[kind], (kind, taken)
