"""Follows grammars beside the pipeline that runs the model.

The state of a grammar's matcher stays with genai's sequence: it cannot be taken to one that is
added anew, nor set back behind wrong tokens, and of the rows before proposed tokens genai samples
none (2026.4.1). So the sequence runs without its grammar, and each row of its logits goes to a
pipeline that computes nothing: genai's own sampler and matcher choose there, as they would have.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ovchat_server.engine.genai.configs import greedy_config
from ovchat_server.engine.genai.handles import new_outputs
from ovchat_server.engine.genai.sizes import block_size
from ovchat_server.engine.genai.weightless_pipeline import (
    given_logits,
    one_token,
    weightless_pipeline,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino_genai as genai

    from ovchat_server.engine.genai.logits_hook import Floats

# How many grammars are followed at once: a pipeline cannot run one of its sequences alone.
FOLLOWERS = 4
MEASURED_TOKENS = 8
# How many times as long a token takes between two steps of the model, which leave nothing in the
# processor's caches, before any was measured.
COLD = 3
# The weight of what was measured against that before it.
WEIGHT = 0.05


@dataclass(slots=True)
class _Seconds:
    """What following a grammar takes.

    Attributes:
        begin: To begin, with the first token.
        replayed: Each further token that is known.
        chosen: Each token between two steps of the model.
    """

    begin: float = 0.0
    replayed: float = 0.0
    chosen: float = 0.0


@dataclass(frozen=True, slots=True)
class FollowerPipelines:
    """Pipelines in which a grammar each is followed.

    Attributes:
        free: Those in which none is.
        logits: What they choose from, one at a time.
    """

    free: list[genai.ContinuousBatchingPipeline]
    logits: Floats

    @classmethod
    def load(
        cls,
        tokenizer: genai.Tokenizer,
        vocabulary_size: int,
        context_length: int,
        count: int,
        **properties: int,
    ) -> FollowerPipelines:
        """Load some.

        Args:
            tokenizer: Has the compiled grammars.
            vocabulary_size: How many logits the model has.
            context_length: The maximum number of tokens of an answer.
            count: How many.
            properties: OpenVINO's.
        """
        logits: Floats = np.zeros(vocabulary_size, np.float32)
        given = given_logits(lambda: logits)
        blocks = context_length // block_size("CPU") + 2
        free = [
            weightless_pipeline(tokenizer, vocabulary_size, blocks, given, **properties)
            for _ in range(count)
        ]
        return cls(free, logits)


class GrammarFollowers:
    """Follows some grammars at once."""

    def __init__(
        self, tokenizer: genai.Tokenizer, vocabulary_size: int, context_length: int
    ) -> None:
        """Load a pipeline for each; see FollowerPipelines.load."""
        self._pipelines = FollowerPipelines.load(
            tokenizer, vocabulary_size, context_length, FOLLOWERS
        )
        self._seconds = _Seconds()
        for _ in range(FOLLOWERS):
            # The first step of each prepares.
            self.begin(greedy_config(MEASURED_TOKENS), (0,) * MEASURED_TOKENS).close()
        self._seconds.chosen = COLD * self._seconds.replayed

    @property
    def free(self) -> bool:
        """Whether another one can begin."""
        return bool(self._pipelines.free)

    def seconds(self, answered: int, rest: int) -> float:
        """Return how long it takes to follow a grammar.

        Args:
            answered: How many tokens of the answer are known.
            rest: How many are to come.
        """
        seconds = self._seconds
        return seconds.begin + answered * seconds.replayed + rest * seconds.chosen

    def begin(self, config: genai.GenerationConfig, tokens: Sequence[int]) -> GrammarFollower:
        """Follow a grammar; see `free`.

        Args:
            config: Has the grammar, and says how to choose.
            tokens: Those that are known of the answer, at least one.
        """
        start, seconds, (first, *others) = time.perf_counter(), self._seconds, tokens
        follower = GrammarFollower(self._pipelines, config, seconds)
        try:
            follower.replay([first])
            begun = time.perf_counter()
            follower.replay(others)
        except BaseException:
            follower.close()
            raise
        seconds.begin = _mean(seconds.begin, begun - start)
        if others:
            each = (time.perf_counter() - begun) / len(others)
            seconds.replayed = _mean(seconds.replayed, each)
        return follower


class GrammarFollower:
    """Follows the grammar of one answer."""

    def __init__(
        self,
        pipelines: FollowerPipelines,
        config: genai.GenerationConfig,
        seconds: _Seconds | None = None,
    ) -> None:
        """Begin in one of the free pipelines.

        Args:
            pipelines: At least one is free.
            config: See GrammarFollowers.begin.
            seconds: Learns how long a token takes; None: nobody asks.
        """
        self._pipelines = pipelines
        self._pipeline: genai.ContinuousBatchingPipeline | None = pipelines.free.pop()
        self._seconds = seconds or _Seconds()
        self._handle = self._pipeline.add_request(0, one_token(), config)

    def replay(self, tokens: Sequence[int]) -> None:
        """Go on behind tokens that are known.

        Raises:
            RuntimeError: They do not follow the grammar.
        """
        certain = np.empty_like(self._pipelines.logits)
        for token in tokens:
            certain.fill(-np.inf)
            certain[token] = 0
            if self._next(certain) != token:
                raise RuntimeError(f"token {token} does not follow the grammar")

    def choose(self, logits: Floats) -> int:
        """Sample the answer's next token, and go on behind it, which cannot be undone.

        Args:
            logits: Those of all tokens, after bias, bans and penalties.
        """
        start = time.perf_counter()
        token = self._next(logits)
        self._seconds.chosen = _mean(self._seconds.chosen, time.perf_counter() - start)
        return token

    def close(self) -> None:
        """Let another one begin. May be called again."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline:
            self._handle.cancel()
            # Frees its blocks.
            pipeline.step()
            self._pipelines.free.append(pipeline)

    def _next(self, logits: Floats) -> int:
        np.copyto(self._pipelines.logits, logits)
        if self._pipeline:
            self._pipeline.step()
        [output] = new_outputs(self._handle)
        [token] = output.generated_ids
        return int(token)


def _mean(before: float, seconds: float) -> float:
    return before + WEIGHT * (seconds - before) if before else seconds
