"""Conversations that part at any token, asked at once: does any answer know another's?

    .venv/bin/python -m benchmarks.branches [--rounds 200] [--seed 1]
                                            [--blocks 256] [--step-tokens 256]

Starts an engine with a random model and asks for chats that go on from each other's texts, most of
them up to the end of a KV block, with searches, prompts that are told of and requests that are
given up. Every sequence is compared with the model without an engine. Exits with 1 where one is
wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path

from ovchat_server.domain.models import ModelState
from tests.branches import Branches
from tests.engine.conftest import Watched, spec
from tests.random_model import save_random_model
from tests.reference_rules import ReferenceModel

VOCABULARY = 4096


async def ask(options: argparse.Namespace, folder: Path) -> bool:
    """Whether all was right."""
    path = save_random_model(folder / "random", VOCABULARY)
    watched = Watched(
        spec(
            str(path),
            end_tokens=(),
            context_length=512,
            kv_blocks=options.blocks,
            max_num_batched_tokens=options.step_tokens,
        )
    )
    watched.engine.start()
    await watched.until(ModelState.READY)
    branches = Branches(watched, ReferenceModel(path), random.Random(options.seed))
    await branches.run(options.rounds)
    load = watched.engine.status.load
    await watched.engine.close()
    print(f"{branches.checked} sequences, {len(branches.wrong)} wrong; {load}")
    for request, place in branches.wrong:
        print(
            f"wrong at token {place}: a prompt of {len(request.prompt)}, {request.max_tokens} more"
        )
    return not branches.wrong


def main() -> int:
    """Parse the command line, and ask."""
    parser = argparse.ArgumentParser(description="Conversations that part at any token")
    parser.add_argument("--rounds", type=int, default=200, help="of up to 16 requests at once")
    parser.add_argument("--seed", type=int, default=1, help="of what is asked")
    parser.add_argument("--blocks", type=int, default=256, help="of the KV cache, 32 tokens each")
    parser.add_argument("--step-tokens", type=int, default=256, help="most tokens of a step")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(ask(parser.parse_args(), Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
