"""genai's continuous-batching pipeline behind the scheduler's interface.

Only the engine process imports it: its `step()` holds the GIL for the whole inference.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import openvino_genai as genai

from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.configs import generation_config, greedy_config, scheduler_config
from ovchat_server.engine.genai.grammar_compiler import GrammarCompiler, vocabulary_size
from ovchat_server.engine.genai.hooked_model import hooked_model
from ovchat_server.engine.genai.logits_control import (
    LogitsControl,
    RunningBeamSearch,
    RunningSequence,
)
from ovchat_server.engine.genai.logits_hook import logits_hook
from ovchat_server.engine.genai.prompt_input import PromptInput, RowInput, TokenInput
from ovchat_server.engine.genai.sequence_logits import (
    SequenceLogits,
    Vocabulary,
    needs_logits,
    needs_processor,
)
from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

WEIGHTS = "openvino*model.bin"
# Tokens a KV block holds, by device (genai, kv_cache_manager.hpp).
CPU_BLOCK_SIZE = 32
GPU_BLOCK_SIZE = 16

# Logits that a step computes for scores of prompts at most: 64 MB, and a tenth of a second.
SCORED_LOGITS = 1 << 24

FINISH = {
    genai.GenerationFinishReason.STOP: "stop",
    genai.GenerationFinishReason.LENGTH: "length",
}


class GenaiHandle:
    """A sequence inside the pipeline."""

    def __init__(
        self, handle: genai.GenerationHandle, sequence: RunningSequence, logits: LogitsControl
    ) -> None:
        """Wrap a handle. Keep it: genai ends a sequence whose handle is destroyed."""
        self._handle = handle
        self._sequence = sequence
        self._logits = logits
        # Tokens of the prompt that genai returns before those of the answer.
        self._echoed = len(sequence.prompt) if sequence.echoes else 0
        logits.enter(sequence)

    @property
    def answered(self) -> int:
        """The number of tokens generated, by each beam of a beam search; 0 during prefill."""
        return self._sequence.length - len(self._sequence.prompt)

    @property
    def cached(self) -> int | None:
        """The number of tokens that the prefix cache had of the prompt; None: not known."""
        return self._sequence.cached

    def take(self) -> list[Output]:
        """Return the tokens since the last call."""
        tokens: list[int] = []
        logprobs: list[float] = []
        finish = None
        # read() on an empty queue blocks for ever, holding the GIL.
        while self._handle.can_read():
            for output in self._handle.read().values():
                new = output.generated_ids[self._echoed :]
                self._echoed = 0
                tokens += new
                # There may be fewer for the prompt, and they are of other requests' logits.
                logprobs += output.generated_log_probs[-len(new) :] if new else []
                finish = FINISH.get(output.finish_reason, finish)
        self._sequence.grow(tokens)
        if finish:
            self._logits.leave(self._sequence)
        if not tokens and not finish:
            return []
        return [self._sequence.report(Output(tokens, logprobs, finish))]

    def dropped(self) -> bool:
        """Return whether genai dropped the sequence by itself."""
        if self._handle.get_status() != genai.GenerationStatus.IGNORED:
            return False
        self._logits.leave(self._sequence)
        return True

    def cancel(self) -> None:
        """Cancel it; its blocks are free after the next step."""
        self._handle.cancel()
        self._logits.leave(self._sequence)


class GenaiBeamSearchHandle(GenaiHandle):
    """A beam search inside the pipeline, which reports nothing before it ends."""

    def take(self) -> list[Output]:
        """Return all sequences, the best first, once they have ended."""
        if self._handle.get_status() != genai.GenerationStatus.FINISHED:
            return []
        self._logits.leave(self._sequence)
        # Sorted, and without the beams that were not asked for, unlike read().
        return [
            Output(
                list(output.generated_ids),
                list(output.generated_log_probs),
                FINISH[output.finish_reason],
            )
            for output in self._handle.read_all()
        ]


class GenaiPipeline:
    """A loaded model; implements engine.scheduling.steps.Pipeline."""

    def __init__(self, spec: GenerationSpec) -> None:
        """Load the model, and run it once: the first step allocates the KV cache.

        Raises:
            RuntimeError: genai cannot load it.
        """
        self._end_tokens = set(spec.end_tokens)
        self._tokenizer = genai.Tokenizer(spec.path)
        self._tokenizer_end: int = self._tokenizer.get_eos_token_id()
        self._logits = LogitsControl()
        self._speculates = spec.options.speculation is not None
        self._input: PromptInput = TokenInput()
        self._pipeline, self.capabilities = self._load(spec)
        # Not the requests' ids: slices of prompts have none.
        self._ids = itertools.count()
        self.vocabulary_size = vocabulary_size(spec.path)
        on_gpu = spec.options.device.startswith("GPU")
        self.block_size = GPU_BLOCK_SIZE if on_gpu else CPU_BLOCK_SIZE
        self.scored_tokens = max(SCORED_LOGITS // self.vocabulary_size, self.block_size)
        self.total_blocks = self._measure_blocks()
        self.weight_bytes = sum(file.stat().st_size for file in Path(spec.path).glob(WEIGHTS))
        self.cache_bytes: int = self._pipeline.get_metrics().kv_cache_size_in_bytes
        # Measures how the process grows, so after the KV cache was allocated.
        self.grammar_compiler = GrammarCompiler(self._tokenizer, self.vocabulary_size)

    def add(
        self, request: SequenceRequest, answered: int, scores: PromptScores | None
    ) -> GenaiHandle:
        """Add a sequence; it runs from the next step on."""
        generation = request.generation
        prompt, config = generation.prompt, self._config(generation)
        config.echo = scores is not None
        if generation.beam_search:
            beams = RunningBeamSearch(self._input.told(prompt), generation.beam_search.width)
            return GenaiBeamSearchHandle(self._add(prompt, config), beams, self._logits)
        logits = None
        if self._needs_logits(generation):
            logits = SequenceLogits(
                generation,
                answered,
                Vocabulary(self.vocabulary_size, self.text),
                stops={self._tokenizer_end, *self._stops(generation)},
                as_tokens=self._input.as_tokens,
            )
        rows = generation.speculation.rows
        sequence = RunningSequence(self._input.told(prompt), logits, scores, rows)
        return GenaiHandle(self._add(prompt, config), sequence, self._logits)

    def read(self, prompt: Prompt, scores: PromptScores | None) -> GenaiHandle:
        """Add a prompt to be read into the prefix cache; its handle yields one token."""
        config = greedy_config(max_tokens=1, speculates=self._speculates)
        config.echo = scores is not None
        sequence = RunningSequence(self._input.told(prompt), scores=scores)
        return GenaiHandle(self._add(prompt, config), sequence, self._logits)

    @property
    def computed(self) -> bool:
        """Whether the last step computed its logits, as far as is known."""
        return self._logits.seen

    def step(self) -> None:
        """Run the model once over all sequences."""
        self._logits.seen = False
        self._pipeline.step()
        if not self.capabilities.sees_logits:
            self._logits.assume()

    def text(self, tokens: Sequence[int]) -> str:
        """Return tokens as text, with special tokens."""
        return str(self._tokenizer.decode([*tokens], skip_special_tokens=False))

    def _load(self, spec: GenerationSpec) -> tuple[genai.ContinuousBatchingPipeline, Capabilities]:
        """Return the model in a pipeline, and what it can do."""
        options = spec.options
        cache = str(options.properties.get("CACHE_DIR", ""))
        with hooked_model(spec.path, options.device, cache) as hooked:
            if self._speculates and hooked is None:
                advice = f"leave out speculation: on {options.device} its logits cannot be seen"
                raise ModelLoadError(advice)
            rows = hooked.rows if hooked else None
            if rows:
                self._input = RowInput(spec.path, rows, options.properties)
            operations = [*rows.operations()] if rows else []
            if hooked:
                operations.append(logits_hook(self._logits.observe))
            pipeline = genai.ContinuousBatchingPipeline(
                hooked.path if hooked else spec.path,
                self._tokenizer,
                scheduler_config(options),
                options.device,
                **options.properties,
                **({"prompt_lookup": True} if self._speculates else {}),
                **({"extensions": operations} if operations else {}),
            )
        # genai crashes where it is to echo a prompt of rows.
        return pipeline, Capabilities(sees_logits=hooked is not None, scores_prompts=rows is None)

    def _add(self, prompt: Prompt, config: genai.GenerationConfig) -> genai.GenerationHandle:
        return self._pipeline.add_request(next(self._ids), self._input.tensor(prompt), config)

    def _needs_logits(self, request: GenerationRequest) -> bool:
        return needs_logits(request, as_tokens=self._input.as_tokens)

    def _config(self, request: GenerationRequest) -> genai.GenerationConfig:
        return generation_config(
            request,
            self._stops(request),
            reports=not self._needs_logits(request),
            penalizes=not needs_processor(request, as_tokens=self._input.as_tokens),
            speculates=self._speculates,
        )

    def _stops(self, request: GenerationRequest) -> set[int]:
        if request.self_terminating:
            # The grammar allows all others inside strings, where they must not end the answer.
            return {self._tokenizer_end}
        return self._end_tokens.union(request.stop_tokens)

    def _measure_blocks(self) -> int:
        """Return the number of KV blocks, from the share that a sequence of one block takes."""
        handle = GenaiHandle(
            self._add(Prompt((0,)), greedy_config(max_tokens=2, speculates=self._speculates)),
            RunningSequence((0,)),
            self._logits,
        )
        self._pipeline.step()
        share = self._pipeline.get_metrics().cache_usage
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        handle.take()
        if share <= 0:
            raise RuntimeError("the pipeline does not report the size of its KV cache")
        return round(100 / float(share))
