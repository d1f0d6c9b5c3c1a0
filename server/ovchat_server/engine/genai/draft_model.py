"""A small model in a pipeline of its own, which writes what the large one may write."""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino_genai as genai

from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.configs import device_properties, greedy_config, scheduler_config
from ovchat_server.engine.genai.grammar_compiler import vocabulary_size
from ovchat_server.engine.genai.handles import new_outputs
from ovchat_server.engine.genai.model_layers import has_recurrent_layers
from ovchat_server.engine.genai.sizes import cache_bytes, weight_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation_spec import GenerationOptions
    from ovchat_server.engine.scheduling.draft_proposer import DraftProposer

# Steps of a round beyond those that it should take.
SPARE = 4


class _Draft:
    """What is written for one text."""

    def __init__(
        self, handle: genai.GenerationHandle, text: DraftProposer, count: int, vocabulary: int
    ) -> None:
        self._handle = handle
        self._text = text
        self._count = count
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._unsure = False
        self.ended = False

    def take(self) -> None:
        """Take the tokens that came."""
        for output in new_outputs(self._handle):
            if not self.ended:
                self._took(output)
        # It may have been dropped.
        self.ended |= self._handle.get_status() != genai.GenerationStatus.RUNNING

    def finish(self) -> None:
        """End it, and tell what was written."""
        self._handle.cancel()
        self._text.drafted(self._tokens, unsure=self._unsure)

    def _took(self, output: genai.GenerationOutput) -> None:
        for token, logprob in zip(output.generated_ids, output.generated_log_probs, strict=True):
            # Beyond the vocabulary are numbers that fill up the table of logits.
            if token in self._text.stops or token >= self._vocabulary:
                self.ended = True
            elif math.exp(logprob) < self._text.threshold:
                self.ended = self._unsure = True
            if self.ended:
                return
            self._tokens.append(token)
        self.ended = len(self._tokens) >= self._count


class GenaiDraftModel:
    """See scheduling.drafts.DraftModel.

    The prefix cache finds what it read of a text before. It may confuse parts of blocks of texts
    that are read in one step; then a draft is worth nothing, which does no harm.
    """

    def __init__(
        self, folder: str, options: GenerationOptions, blocks: int, vocabulary: int
    ) -> None:
        """Load a model.

        Args:
            folder: Where it is.
            options: Those of the model for which it drafts.
            blocks: How many KV blocks that one has.
            vocabulary: How many logits that one has.

        Raises:
            RuntimeError: genai cannot load it.
            ModelLoadError: It cannot draft.
        """
        if has_recurrent_layers(folder):
            # What a step reads stays in their state, also tokens that are wrong.
            raise ModelLoadError(f"choose another draft_model: {folder} has layers with a state")
        scheduler = scheduler_config(options)
        scheduler.cache_size, scheduler.num_kv_blocks = 0, blocks
        self._step_tokens = options.max_num_batched_tokens
        self._pipeline = genai.ContinuousBatchingPipeline(
            folder, genai.Tokenizer(folder), scheduler, options.device, **device_properties(options)
        )
        self._ids = itertools.count()
        self._known = vocabulary_size(folder)
        self._vocabulary = vocabulary
        self.weight_bytes = weight_bytes(folder)
        self.read((0,), cache_salt=0)
        self.cache_bytes = cache_bytes(self._pipeline, options)

    def read(self, tokens: Sequence[int], cache_salt: int) -> None:
        """See scheduling.drafts.DraftModel."""
        # A handle that is not kept ends its sequence.
        handle = self._add(tokens, cache_salt, greedy_config(max_tokens=1))
        for _ in range(len(tokens) // self._step_tokens + SPARE):
            if not self._pipeline.has_non_finished_requests():
                break
            self._pipeline.step()
        handle.cancel()

    def draft(self, texts: Sequence[tuple[DraftProposer, int]]) -> Sequence[float]:
        """See scheduling.drafts.DraftModel."""
        seconds, before = [], time.perf_counter()
        drafts = [
            _Draft(
                self._add(text.text, text.cache_salt, _config(text, count)),
                text,
                count,
                self._vocabulary,
            )
            for text, count in texts
        ]
        most = max(count for _, count in texts) + SPARE
        most += sum(len(text.text) for text, _ in texts) // self._step_tokens
        for _ in range(most):
            self._pipeline.step()
            for draft in drafts:
                draft.take()
            now = time.perf_counter()
            seconds.append(now - before)
            before = now
            if all(draft.ended for draft in drafts):
                break
        for draft in drafts:
            draft.finish()
        return seconds

    def _add(
        self, tokens: Sequence[int], cache_salt: int, config: genai.GenerationConfig
    ) -> genai.GenerationHandle:
        prompt = np.array([tokens], dtype=np.int64)
        # Numbers that fill up the other model's table.
        prompt[prompt >= self._known] = 0
        first, *_ = Prompt((int(prompt[0, 0]),), cache_salt=cache_salt).cache_ids()
        prompt[0, 0] = first
        return self._pipeline.add_request(next(self._ids), ov.Tensor(prompt), config)


def _config(text: DraftProposer, count: int) -> genai.GenerationConfig:
    config = greedy_config(count)
    if text.stops:
        config.ignore_eos = False
        config.stop_token_ids = set(text.stops)
    config.logprobs = 1
    return config
