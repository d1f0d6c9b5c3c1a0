"""What it costs to be told of a prompt's tokens: who asks, and who streams meanwhile.

    .venv/bin/python -m benchmarks.prompt_scores MODEL_FOLDER [--tokens 1024] [--rounds 5]
                                                 [--property NAME=VALUE]

One engine reads new prompts in turn, with and without `prompt_logprobs`, alone and beside a
stream. Prints the seconds to the first token by those without, and the stream's longest pause.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import time
from pathlib import Path

from benchmarks.figures import Spread
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.generation import GenerationRequest
from ovchat_server.engine.contract.prompt import Prompt

# The server's own, so that they cannot differ.
from ovchat_server.kinds.text_generation import generation_spec
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.settings import ModelSettings

PLAIN = "without"
WAYS: dict[str, int | None] = {PLAIN: None, "prompt_logprobs: 0": 0, "prompt_logprobs: 5": 5}


class Reading:
    """An engine that reads prompts of one length."""

    def __init__(self, engine: EngineSupervisor, vocabulary_size: int, tokens: int) -> None:
        """Read with an engine that is ready, of its vocabulary."""
        self._engine = engine
        self._vocabulary = range(1, vocabulary_size)
        self._tokens = tokens

    async def seconds(self, top: int | None) -> float:
        """Until the first token behind a new prompt."""
        prompt = tuple(random.choices(self._vocabulary, k=self._tokens))
        start = time.perf_counter()
        request = GenerationRequest(Prompt(prompt), 1, ignore_eos=True, prompt_logprobs=top)
        with self._engine.generate([request]) as generation:
            told = [piece async for piece in generation]
        if len(told[0].prompt) != (0 if top is None else self._tokens - 1):
            raise SystemExit("The prompt's tokens were not told of.")
        return time.perf_counter() - start

    async def pause(self, top: int | None) -> float:
        """The longest of a stream, while a prompt is read."""
        times: list[float] = []
        # It goes on for longer than any prompt takes.
        longest = self._engine.status.context_length - 2
        request = GenerationRequest(Prompt((1, 2)), longest, ignore_eos=True)
        with self._engine.generate([request]) as stream:
            reading: asyncio.Task[float] | None = None
            async for _ in stream:
                times.append(time.perf_counter())
                reading = reading or asyncio.create_task(self.seconds(top))
                if reading.done():
                    break
        return max(later - earlier for earlier, later in itertools.pairwise(times))


async def measure(options: argparse.Namespace) -> None:
    """Run the rounds and print what they came to."""
    properties = dict(item.split("=", 1) for item in options.property)
    settings = ModelSettings(name="bench", path=options.model.resolve(), properties=properties)
    changed = asyncio.Event()
    files = read_model_files(settings.path)
    spec = generation_spec(settings, files)
    engine = EngineSupervisor(spec, changed.set)
    engine.start()
    try:
        while engine.status.state is not ModelState.READY:
            await changed.wait()
            changed.clear()
        reading = Reading(engine, files.vocabulary_size, options.tokens)
        await reading.seconds(0)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        pauses: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(options.rounds):
            for way, top in WAYS.items():
                seconds[way].append(await reading.seconds(top))
                pauses[way].append(await reading.pause(top))
    finally:
        await engine.close()
    for way in WAYS:
        pairs = zip(seconds[way], seconds[PLAIN], strict=True)
        ratio = Spread.of([taken / plain for taken, plain in pairs])
        print(
            f"{way}: {Spread.of(seconds[way]).median:.2f} s, "
            f"x {ratio.median:.2f} [{ratio.least:.2f} to {ratio.most:.2f}]; "
            f"longest pause {Spread.of(pauses[way]).median:.2f} s"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
