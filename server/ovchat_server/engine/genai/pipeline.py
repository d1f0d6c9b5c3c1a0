"""genai's continuous-batching pipeline behind the scheduler's interface.

Only the engine process imports it: its `step()` holds the GIL for the whole inference.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import openvino_genai as genai

from ovchat_server.engine.contract.messages import Capabilities
from ovchat_server.engine.contract.prompt import ANSWER_SALTS, Prompt
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.configs import (
    device_properties,
    generation_config,
    greedy_config,
    scheduler_config,
)
from ovchat_server.engine.genai.draft_model import GenaiDraftModel
from ovchat_server.engine.genai.first_steps import first_steps
from ovchat_server.engine.genai.grammar_compiler import GrammarCompiler, vocabulary_size
from ovchat_server.engine.genai.grammar_followers import GrammarFollower, GrammarFollowers
from ovchat_server.engine.genai.handles import GenaiBeamSearchHandle, GenaiHandle
from ovchat_server.engine.genai.hooked_model import hooked_model
from ovchat_server.engine.genai.logits_control import (
    LogitsControl,
    RunningBeamSearch,
    RunningSequence,
)
from ovchat_server.engine.genai.logits_hook import logits_hook
from ovchat_server.engine.genai.model_layers import has_recurrent_layers
from ovchat_server.engine.genai.prompt_input import PromptInput, RowInput, TokenInput
from ovchat_server.engine.genai.sequence_logits import (
    SequenceLogits,
    Vocabulary,
    needs_logits,
    needs_processor,
)
from ovchat_server.engine.genai.sizes import block_size, cache_bytes, weight_bytes
from ovchat_server.engine.genai.speculating_handle import SpeculatingHandle
from ovchat_server.engine.scheduling.drafts import Drafts
from ovchat_server.engine.scheduling.prompt_lookup import PromptLookups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.genai.proposal_check import ProposalCheck
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores
    from ovchat_server.engine.scheduling.proposer import Proposer, Proposers
    from ovchat_server.engine.scheduling.speculator import Speculator
    from ovchat_server.engine.scheduling.steps import Handle


# Logits that a step computes for scores of prompts at most: 64 MB, and a tenth of a second.
SCORED_LOGITS = 1 << 24


class GenaiPipeline:
    """A loaded model; implements engine.scheduling.steps.Pipeline."""

    def __init__(self, spec: GenerationSpec, speculator: Speculator) -> None:
        """Load the model, and run it once: the first step allocates the KV cache.

        Args:
            spec: Names it.
            speculator: Decides what is proposed, if the spec says that anything is.

        Raises:
            RuntimeError: genai cannot load it.
        """
        self._end_tokens = set(spec.end_tokens)
        self._tokenizer = genai.Tokenizer(spec.path)
        self._tokenizer_end: int = self._tokenizer.get_eos_token_id()
        self._logits = LogitsControl()
        self._speculates = spec.options.speculation is not None
        self._speculator = speculator
        self._proposers: Proposers = PromptLookups()
        self._speculating: list[SpeculatingHandle] = []
        # Whether prompts were added since the last step.
        self._reads = False
        self.proposed = False
        self.sampling_seconds = 0.0
        self._step_tokens = spec.options.max_num_batched_tokens
        self._input: PromptInput = TokenInput()
        self._pipeline, self.capabilities = self._load(spec)
        # Not the requests' ids: slices of prompts have none.
        self._ids = itertools.count()
        self._answer_salts = itertools.cycle(range(1, ANSWER_SALTS))
        self.vocabulary_size = vocabulary_size(spec.path)
        self.block_size = block_size(spec.options.device)
        self.scored_tokens = max(SCORED_LOGITS // self.vocabulary_size, self.block_size)
        self.total_blocks = self._measure_blocks()
        self.weight_bytes = weight_bytes(spec.path)
        self.cache_bytes = cache_bytes(self._pipeline, spec.options)
        if spec.draft_model:
            self._load_draft_model(spec)
        if self._speculates:
            # Without, nothing might be worth a trial.
            speculator.begin(*first_steps(self._add, self._pipeline.step))
            self.followers = GrammarFollowers(
                self._tokenizer, self.vocabulary_size, spec.context_length
            )
        # Measures how the process grows, so after the KV cache was allocated.
        self.grammar_compiler = GrammarCompiler(self._tokenizer, self.vocabulary_size)

    def add(self, request: SequenceRequest, answered: int, scores: PromptScores | None) -> Handle:
        """Add a sequence; it runs from the next step on."""
        self._reads = True
        generation = request.generation
        prompt = generation.prompt
        if generation.beam_search:
            beams = RunningBeamSearch(self._input.told(prompt), generation.beam_search.width)
            handle = self._add(prompt, self._config(generation))
            return GenaiBeamSearchHandle(handle, beams, self._logits)
        needed = self._needs_logits(generation)
        logits = self.sequence_logits(generation, answered) if needed else None
        if not generation.speculates:
            return self.add_sequence(generation, logits, scores)
        speculating = SpeculatingHandle(self, generation, logits, scores)
        self._speculating.append(speculating)
        return speculating

    def add_sequence(
        self,
        request: GenerationRequest,
        logits: SequenceLogits | None,
        scores: PromptScores | None = None,
        check: ProposalCheck | None = None,
    ) -> GenaiHandle:
        """See SequencePipeline."""
        config = self._config(request)
        sequence = RunningSequence(self._input.told(request.prompt), logits, scores, check)
        config.echo = sequence.echoes
        return GenaiHandle(self._add(request.prompt, config), sequence, self._logits)

    def sequence_logits(self, request: GenerationRequest, answered: int) -> SequenceLogits:
        """See SequencePipeline."""
        return SequenceLogits(
            request,
            answered,
            Vocabulary(self.vocabulary_size, self.text),
            stops=self.stops(request),
            as_tokens=self._input.as_tokens,
        )

    @property
    def grammars_cleared(self) -> int:
        """See SequencePipeline."""
        return self.grammar_compiler.cleared

    def follow(self, request: GenerationRequest, tokens: Sequence[int]) -> GrammarFollower:
        """See SequencePipeline."""
        return self.followers.begin(self._config(request), tokens)

    def stops(self, request: GenerationRequest) -> set[int]:
        """See SequencePipeline."""
        return {self._tokenizer_end, *self._stops(request)}

    def answer_salt(self) -> int:
        """See SequencePipeline."""
        return next(self._answer_salts)

    def proposer(self, request: GenerationRequest) -> Proposer:
        """See SequencePipeline."""
        stops = () if request.ignore_eos else self.stops(request)
        return self._proposers.proposer(request, stops)

    def read(self, prompt: Prompt, scores: PromptScores | None) -> GenaiHandle:
        """Add a prompt to be read into the prefix cache; its handle yields one token."""
        self._reads = True
        config = greedy_config(max_tokens=1)
        config.echo = scores is not None
        sequence = RunningSequence(self._input.told(prompt), scores=scores)
        return GenaiHandle(self._add(prompt, config), sequence, self._logits)

    @property
    def computed(self) -> bool:
        """Whether the last step computed its logits, as far as is known."""
        return self._logits.seen_at > 0

    def step(self, free_blocks: int = 0) -> None:
        """See steps.Pipeline."""
        self._logits.seen_at = self.sampling_seconds = 0.0
        reads, self._reads = self._reads, False
        self._speculating = [item for item in self._speculating if not item.ended]
        running = self._logits.beams
        # Where prompts are read, genai divides what a step may read among them.
        chosen = {} if reads else self._choose(running, free_blocks)
        start = time.perf_counter()
        further = sum(item.prepare(chosen.get(item, 0)) - 1 for item in self._speculating)
        self._pipeline.step()
        ended = time.perf_counter()
        self.proposed = bool(chosen)
        if not reads:
            self._speculator.note(running, further, ended - start)
        if self.computed:
            self.sampling_seconds = ended - self._logits.seen_at
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
            if self._speculates and has_recurrent_layers(spec.path):
                # What a step reads stays in their state, also tokens that are wrong.
                raise ModelLoadError("leave out speculation: the model has layers with a state")
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
                **device_properties(options),
                **({"extensions": operations} if operations else {}),
            )
        # genai crashes where it is to echo a prompt of rows.
        return pipeline, Capabilities(sees_logits=hooked is not None, scores_prompts=rows is None)

    def _load_draft_model(self, spec: GenerationSpec) -> None:
        model = GenaiDraftModel(
            spec.draft_model, spec.options, self.total_blocks, self.vocabulary_size
        )
        self._proposers = Drafts(model, spec.draft_context_length or spec.context_length)
        self.weight_bytes += model.weight_bytes
        self.cache_bytes += model.cache_bytes

    def _choose(self, running: int, free_blocks: int) -> dict[SpeculatingHandle, int]:
        """Return for whom to propose tokens in the next step, and how many; they are found."""
        handles, candidates = self._speculating, []
        for item in handles:
            if item.new_blocks <= free_blocks and item.chances():
                free_blocks -= item.new_blocks
                candidates.append(item)
        read = sum(item.unread for item in handles if item not in candidates)
        room = self._step_tokens - (running - len(handles)) - read
        proposers = self._proposers
        chosen = self._speculator.propose(running, candidates, room, proposers.seconds)
        for item, _ in chosen:
            item.follow()
        proposers.find([(item.proposer, count) for item, count in chosen if item.owns_blocks])
        return dict(chosen)

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
        )

    def _stops(self, request: GenerationRequest) -> set[int]:
        if request.self_terminating:
            # The grammar allows all others inside strings, where they must not end the answer.
            return {self._tokenizer_end}
        return self._end_tokens.union(request.stop_tokens)

    def _measure_blocks(self) -> int:
        """Return the number of KV blocks, from the share that a sequence of one block takes."""
        handle = GenaiHandle(
            self._add(Prompt((0,)), greedy_config(max_tokens=2)),
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
