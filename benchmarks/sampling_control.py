"""What it costs that an operation sees the logits, as the engine process pays it.

    .venv/bin/python -m benchmarks.sampling_control MODEL_FOLDER [--streams 16] [--rounds 9]
                                                    [--property NAME=VALUE]

In one process genai's pipeline with the model as it is, and the server's own with the operation in
its graph, take the same requests in turn, round after round: unused, and with what may be asked of
it on all requests. Prints tokens/s by those of the model as it is.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_genai as genai

from benchmarks.figures import Spread
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.generation_messages import SequenceRequest
from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.genai.configs import greedy_config, scheduler_config
from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.speculator import Speculator
from ovchat_server.kinds.text_generation import generation_spec
from ovchat_server.serving.model_files import read_model_files
from ovchat_server.settings import ModelSettings

# The server's own, so that they cannot differ.

PROMPT, ANSWER = 64, 64
PLAIN = "as it is"
WAYS: dict[str, tuple[Sampling, int]] = {
    "unused": (Sampling(), 0),
    "top_logprobs: 5": (Sampling(), 5),
    "logit_bias": (Sampling(bias=((5, -1.0),)), 0),
    "presence_penalty": (Sampling(presence_penalty=0.5), 0),
}


class Contest:
    """Both pipelines, and what to ask them."""

    def __init__(self, path: Path, properties: dict[str, str | int | float | bool]) -> None:
        """EngineLoad the model twice."""
        settings = ModelSettings(name="bench", path=path, properties=properties)
        spec = generation_spec(settings, read_model_files(path))
        self._plain = genai.ContinuousBatchingPipeline(
            spec.path,
            genai.Tokenizer(spec.path),
            scheduler_config(spec.options),
            spec.options.device,
            **spec.options.properties,
        )
        self._hooked = GenaiPipeline(spec, Speculator())
        if not self._hooked.capabilities.sees_logits:
            raise SystemExit("This model's logits cannot be seen.")
        self._ids = itertools.count(1)
        self._tokens = range(300, min(self._hooked.vocabulary_size, 4000))

    def prompts(self, count: int) -> list[tuple[int, ...]]:
        """Prompts that no prefix cache knows."""
        return [tuple(random.choices(self._tokens, k=PROMPT)) for _ in range(count)]

    def plain(self, prompts: list[tuple[int, ...]]) -> float:
        """Tokens a second of the model as it is."""
        handles = [
            self._plain.add_request(
                next(self._ids), ov.Tensor(np.array([prompt], np.int64)), greedy_config(ANSWER)
            )
            for prompt in prompts
        ]
        start = time.perf_counter()
        while self._plain.has_non_finished_requests():
            self._plain.step()
            for handle in handles:
                while handle.can_read():
                    handle.read()
        return len(prompts) * ANSWER / (time.perf_counter() - start)

    def hooked(self, prompts: list[tuple[int, ...]], way: str) -> float:
        """The same with the operation, and something asked of it."""
        sampling, top = WAYS[way]
        handles = [
            self._hooked.add(
                SequenceRequest(
                    next(self._ids),
                    GenerationRequest(
                        Prompt(prompt),
                        ANSWER,
                        sampling=sampling,
                        ignore_eos=True,
                        logprobs=top > 0,
                        top_logprobs=top,
                    ),
                ),
                answered=0,
                scores=None,
            )
            for prompt in prompts
        ]
        start = time.perf_counter()
        told = 0
        while told < len(prompts) * ANSWER:
            self._hooked.step()
            for output in itertools.chain(*(handle.take() for handle in handles)):
                if output.finish == MISATTRIBUTED:
                    raise SystemExit("A row of logits was not that of its sequence.")
                told += len(output.tokens)
        return told / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    properties = dict(item.split("=", 1) for item in options.property)
    contest = Contest(options.model.resolve(), properties)
    contest.plain(contest.prompts(options.streams))
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    speeds = []
    for number in range(options.rounds):
        order = [PLAIN, *WAYS]
        order = order[number % len(order) :] + order[: number % len(order)]
        found = {
            way: contest.plain(prompts) if way == PLAIN else contest.hooked(prompts, way)
            for way in order
            if (prompts := contest.prompts(options.streams))
        }
        speeds.append(found[PLAIN])
        for way in WAYS:
            ratios[way].append(found[way] / found[PLAIN])
    print(f"{PLAIN}: {statistics.median(speeds):.1f} tokens/s")
    for way, values in ratios.items():
        spread = Spread.of(values)
        print(f"{way}: x {spread.median:.3f} [{spread.least:.3f} to {spread.most:.3f}]")


if __name__ == "__main__":
    main()
