"""What different sets of tools and schemas leave behind in memory.

    .venv/bin/python -m benchmarks.grammar_memory [--sets 10000] [--every 1000]

Starts `ovchat up` with the demo model and the successor model, asks the demo model once with each
set of three tools, or one schema, and prints what the server, the engines and the grammar processes
take (MiB), with the seconds since the last row.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.grammar_load import OPTIONS, PROCESSES, memory
from tests.launch.stack import running

MIB = 1 << 20


async def measure(options: argparse.Namespace) -> None:
    """Print a row after each `every` sets."""
    print(f"{'sets':>8}{'seconds':>10}", *(f"{kind:>10}" for kind in PROCESSES), sep="")
    with tempfile.TemporaryDirectory() as directory:
        async with running(Path(directory), *OPTIONS) as stack:
            sets, begin = 0, time.monotonic()
            async for row in memory(stack, options.sets, options.every):
                sets += options.every
                seconds, begin = time.monotonic() - begin, time.monotonic()
                figures = (f"{row[kind] / MIB:10.1f}" for kind in PROCESSES)
                print(f"{sets:8}{seconds:10.1f}", *figures, sep="", flush=True)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1000)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
