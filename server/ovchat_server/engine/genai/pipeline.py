"""genai's continuous-batching pipeline behind the scheduler's interface.

Only the engine process imports it: its `step()` holds the GIL for the whole inference.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino_genai as genai

from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.engine.genai.cache_salt import Salts
from ovchat_server.engine.genai.grammar_compiler import ScratchPipeline, structured, vocabulary_size
from ovchat_server.engine.genai.hooked_model import tapped_model
from ovchat_server.engine.genai.logits_control import (
    Control,
    LogitsControl,
    Resident,
    ResidentSearch,
    has_rules,
    needs_logits,
)
from ovchat_server.engine.genai.logits_hook import logits_tap
from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores

# Tokens a KV block holds, by device (genai, kv_cache_manager.hpp).
CPU_BLOCK_SIZE = 32
GPU_BLOCK_SIZE = 16

# Logits of a step that are seen for what is told of prompts: 64 MB, and a tenth of a second.
SCORED_LOGITS = 1 << 24

FINISH = {
    genai.GenerationFinishReason.STOP: "stop",
    genai.GenerationFinishReason.LENGTH: "length",
}


class GenaiHandle:
    """A sequence inside the pipeline."""

    def __init__(
        self, handle: genai.GenerationHandle, resident: Resident, logits: LogitsControl
    ) -> None:
        """Wrap a handle. It must be kept: genai ends a sequence whose handle is dropped."""
        self._handle = handle
        self._resident = resident
        self._logits = logits
        # Tokens of the prompt that come once more before those of the answer.
        self._echoed = len(resident.prompt) if resident.echoes else 0
        logits.enter(resident)

    @property
    def answered(self) -> int:
        """Tokens that it has made, of a search those of each beam; 0: its prompt is being read."""
        return self._resident.length - len(self._resident.prompt)

    def take(self) -> list[Output]:
        """What came since the last time."""
        tokens: list[int] = []
        logprobs: list[float] = []
        finish = None
        # read() on an empty queue blocks for ever, holding the GIL.
        while self._handle.can_read():
            for output in self._handle.read().values():
                new = output.generated_ids[self._echoed :]
                self._echoed = 0
                tokens += new
                # What is told of the prompt may be less, and is of other requests' logits.
                logprobs += output.generated_log_probs[-len(new) :] if new else []
                finish = FINISH.get(output.finish_reason, finish)
        self._resident.grow(tokens)
        if finish:
            self._logits.leave(self._resident)
        if not tokens and not finish:
            return []
        return [self._resident.told(Output(tokens, logprobs, finish))]

    def dropped(self) -> bool:
        """Whether the pipeline gave the sequence up by itself."""
        if self._handle.get_status() != genai.GenerationStatus.IGNORED:
            return False
        self._logits.leave(self._resident)
        return True

    def cancel(self) -> None:
        """Give it up: its blocks are free after the next step."""
        self._handle.cancel()
        self._logits.leave(self._resident)


class GenaiSearchHandle(GenaiHandle):
    """A beam search inside the pipeline. It tells nothing before it ends."""

    def take(self) -> list[Output]:
        """All sequences, the best first, once they have ended."""
        if self._handle.get_status() != genai.GenerationStatus.FINISHED:
            return []
        self._logits.leave(self._resident)
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
    """One model, loaded."""

    def __init__(self, spec: GenerationSpec) -> None:
        """Load the model, and run it once: the first step allocates the KV cache.

        Raises:
            RuntimeError: genai cannot load it.
        """
        self._end_tokens = set(spec.end_tokens)
        self._tokenizer = genai.Tokenizer(spec.path)
        self._tokenizer_end: int = self._tokenizer.get_eos_token_id()
        self._logits = LogitsControl()
        self._salts = Salts()
        self._pipeline, self.capabilities = self._load(spec)
        # Of its own: pieces of prompts have no request's.
        self._ids = itertools.count()
        self.vocabulary_size = vocabulary_size(spec.path)
        self._scratch = ScratchPipeline(self._tokenizer, self.vocabulary_size)
        self.block_size = (
            GPU_BLOCK_SIZE if spec.options.device.startswith("GPU") else CPU_BLOCK_SIZE
        )
        self.scored_tokens = max(SCORED_LOGITS // self.vocabulary_size, self.block_size)
        self.total_blocks = self._measure_blocks()

    def uncached(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Return a prompt that reads the same, of which the prefix cache knows nothing."""
        return self._salts.salted(prompt)

    def add(
        self, request: SequenceRequest, answered: int, scores: PromptScores | None
    ) -> GenaiHandle:
        """Take a sequence in; it runs from the next step on."""
        generation = request.generation
        prompt, config = generation.prompt, self._generation_config(generation)
        config.echo = scores is not None
        if generation.beam_search:
            search = ResidentSearch(prompt, generation.beam_search.width)
            return GenaiSearchHandle(self._add(prompt, config), search, self._logits)
        controlled = needs_logits(generation)
        control = Control(generation, answered, self.vocabulary_size) if controlled else None
        resident = Resident(prompt, control, scores)
        return GenaiHandle(self._add(prompt, config), resident, self._logits)

    def read(self, prompt: Sequence[int], scores: PromptScores | None) -> GenaiHandle:
        """Read a prompt in the next step, so that the prefix cache has it; a token comes of it."""
        config = _plain(max_tokens=1)
        config.echo = scores is not None
        resident = Resident(prompt, scores=scores)
        return GenaiHandle(self._add(prompt, config), resident, self._logits)

    @property
    def computed(self) -> bool:
        """Whether the last step came to its logits, as far as is known."""
        return self._logits.seen

    def step(self) -> None:
        """Run the model once over all sequences."""
        self._logits.seen = False
        self._pipeline.step()
        if not self.capabilities.sees_logits:
            self._logits.assume()

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as text, control tokens and all."""
        return str(self._tokenizer.decode([*tokens], skip_special_tokens=False))

    def compile(self, grammar: str) -> None:
        """Compile a grammar, so that the step that needs it finds it. In a thread of its own.

        Raises:
            GrammarError: It does not compile.
        """
        self._scratch.compile(grammar)

    def _load(self, spec: GenerationSpec) -> tuple[genai.ContinuousBatchingPipeline, Capabilities]:
        """Load the model into a pipeline, and say what it can do."""
        options = spec.options
        cache = str(options.properties.get("CACHE_DIR", ""))
        with tapped_model(spec.path, options.device, cache) as tapped:
            extensions = {"extensions": [logits_tap(self._logits.look)]} if tapped else {}
            pipeline = genai.ContinuousBatchingPipeline(
                tapped or spec.path,
                self._tokenizer,
                _scheduler_config(options),
                options.device,
                **options.properties,
                **extensions,
            )
        return pipeline, Capabilities(sees_logits=tapped is not None)

    def _add(self, prompt: Sequence[int], config: genai.GenerationConfig) -> genai.GenerationHandle:
        tokens = ov.Tensor(np.array([prompt], dtype=np.int64))
        return self._pipeline.add_request(next(self._ids), tokens, config)

    def _generation_config(self, request: GenerationRequest) -> genai.GenerationConfig:
        config = genai.GenerationConfig()
        config.max_new_tokens = request.max_tokens
        config.min_new_tokens = request.min_tokens
        config.ignore_eos = request.ignore_eos
        # A list of one's own stands for the model's, which genai would take otherwise.
        if end_tokens := self._end_tokens.union(request.stop_tokens):
            config.stop_token_ids = end_tokens
        if request.logprobs and not needs_logits(request):
            # More than one changes nothing, and costs. One gives the model's own.
            config.logprobs = 1
        if search := request.beam_search:
            config.num_beams = search.width
            config.num_return_sequences = search.returned
            config.length_penalty = search.length_penalty
            return config
        if request.grammar:
            config.structured_output_config = structured(request.grammar)
        if request.closed:
            # The compiler lets all others stand inside strings, where they would end the answer.
            config.stop_token_ids = {self._tokenizer_end}
        _set_sampling(config, request.sampling)
        if not has_rules(request):
            # Else it is one of the rules: they have an order.
            config.repetition_penalty = request.sampling.repetition_penalty
        return config

    def _measure_blocks(self) -> int:
        """How many blocks the pool has: a sequence of one block says which share it takes."""
        handle = GenaiHandle(self._add([0], _plain(max_tokens=2)), Resident([0]), self._logits)
        self._pipeline.step()
        share = self._pipeline.get_metrics().cache_usage
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        handle.take()
        if share <= 0:
            raise RuntimeError("the pipeline does not tell the size of its KV cache")
        return round(100 / float(share))


def _set_sampling(config: genai.GenerationConfig, sampling: Sampling) -> None:
    if sampling.temperature > 0:
        config.do_sample = True
        config.temperature = sampling.temperature
        config.top_p = sampling.top_p
        config.min_p = sampling.min_p
        config.rng_seed = sampling.seed
        if sampling.top_k > 0:
            config.top_k = sampling.top_k


def _plain(max_tokens: int) -> genai.GenerationConfig:
    """So many of the likeliest tokens."""
    config = genai.GenerationConfig()
    config.max_new_tokens = max_tokens
    config.ignore_eos = True
    return config


def _scheduler_config(options: GenerationOptions) -> genai.SchedulerConfig:
    config = genai.SchedulerConfig()
    # Fixed: a pool that grows takes the machine's memory before it says no.
    if options.kv_cache_gb is not None:
        config.cache_size = options.kv_cache_gb
    else:
        config.num_kv_blocks = options.kv_blocks or DEFAULT_KV_BLOCKS
    config.max_num_batched_tokens = options.max_num_batched_tokens
    config.enable_prefix_caching = True
    return config
