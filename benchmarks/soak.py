"""All kinds of requests for an hour: does any process take more at the end than before?

    .venv/bin/python -m benchmarks.soak [--minutes 60] [--callers 8] [--pause 0.05]

Starts `ovchat up` with the demo model and the successor model, and asks it all kinds of things:
chats, streams that are left half way, gRPC calls with deadlines, structured output, tools, what is
refused. Prints what each kind of process takes of memory (MiB), file descriptors and threads in
each quarter of the time. Exits with 1 where a request went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.schedule import Progress
from tests.launch.stack import running
from tests.soak import DEMO, RESOURCES, Soak, quarters

MIB = 1 << 20


async def soak(options: argparse.Namespace) -> bool:
    """Run the load, print what came of it, and return whether all went well."""
    progress = Progress(sys.stderr)
    with tempfile.TemporaryDirectory() as directory:
        async with running(Path(directory), *DEMO) as stack:
            soak = Soak(stack)

            def state() -> str:
                requests = f"{soak.answered.total()} requests answered, {len(soak.wrong)} wrong"
                return f"{requests}, of {options.minutes:g} min"

            async with progress.repeated(state):
                await soak.run(options.minutes * 60, options.callers, options.pause)
    print(f"{soak.answered.total()} requests: {dict(soak.answered)}")
    print(f"wrong: {len(soak.wrong)}", *soak.wrong[:20], sep="\n  ")
    for resource in RESOURCES:
        unit = MIB if resource == "memory" else 1
        for kind, samples in soak.samples.items():
            row = "".join(f"{value / unit:9.1f}" for value in quarters(samples, resource))
            print(f"{resource:<12} {kind:<10} {row}")
    return not soak.wrong


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.05, help="of a caller between requests")
    return 0 if asyncio.run(soak(parser.parse_args())) else 1


if __name__ == "__main__":
    sys.exit(main())
