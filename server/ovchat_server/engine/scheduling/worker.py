"""The worker of processes that generate tokens: a scheduler over a pipeline, behind its gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.contract.generation_messages import GenerationLimits, generation_decoder
from ovchat_server.engine.contract.messages import EngineMemory, Ready
from ovchat_server.engine.scheduling.grammar_gate import GrammarGate, Grammars
from ovchat_server.engine.scheduling.grammar_thread import Compiler, GrammarThread
from ovchat_server.engine.scheduling.kv_pool import KvPool
from ovchat_server.engine.scheduling.scheduler import Scheduler
from ovchat_server.engine.scheduling.step_budget import StepBudget
from ovchat_server.engine.scheduling.steps import Pipeline

if TYPE_CHECKING:
    from ovchat_server.domain.models import EngineLoad
    from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.contract.messages import Capabilities, Report
    from ovchat_server.engine.contract.worker import WorkerContext

MAX_BEAM_WIDTH = 32


class LoadedPipeline(Pipeline, Protocol):
    """A pipeline with its model, and what it says of itself."""

    @property
    def capabilities(self) -> Capabilities:
        """Return what it can do."""
        ...

    @property
    def total_blocks(self) -> int:
        """Return how many blocks the KV cache has."""
        ...

    @property
    def block_size(self) -> int:
        """Return how many tokens a block holds."""
        ...

    @property
    def weight_bytes(self) -> int:
        """Return how many bytes of weights the model's files hold."""
        ...

    @property
    def cache_bytes(self) -> int:
        """Return how many bytes the KV cache takes."""
        ...

    @property
    def grammar_compiler(self) -> Compiler:
        """Return what compiles grammars, so that the step that needs one finds it."""
        ...


class GenerationWorker:
    """See engine.contract.worker.Worker."""

    def __init__(
        self, pipeline: LoadedPipeline, spec: GenerationSpec, context: WorkerContext
    ) -> None:
        """Generate with a pipeline that was loaded."""
        self.decoder = generation_decoder()
        grammars = Grammars(GrammarThread(pipeline.grammar_compiler, context.wake))
        options = spec.options
        self._pool = KvPool(pipeline.total_blocks, pipeline.block_size)
        self._scheduler = Scheduler(
            pipeline,
            self._pool,
            StepBudget(options.max_step_seconds, options.max_num_batched_tokens),
            isolate=context.isolate,
            compiled=grammars.compiled,
        )
        self._gate = GrammarGate(grammars, self._scheduler, context.wake)
        lengths = [
            min(spec.context_length, self._pool.max_length(width))
            for width in range(1, MAX_BEAM_WIDTH + 1)
        ]
        self.ready = Ready(
            GenerationLimits(lengths[0], tuple(lengths)),
            self.load(),
            pipeline.capabilities,
            EngineMemory(
                weights=pipeline.weight_bytes,
                kv_cache=pipeline.cache_bytes,
                kv_tokens=pipeline.total_blocks * pipeline.block_size,
                max_length=lengths[0],
                context_length=spec.context_length,
            ),
        )

    def add(self, request: SequenceRequest) -> None:
        """Take a request; one that cannot fit is refused."""
        if self._fits(request):
            self._gate.add(request)
        else:
            self._scheduler.refuse(request.id, "it cannot fit")

    def cancel(self, identifier: int) -> None:
        """Give a request up."""
        self._gate.cancel(identifier)

    def poll(self) -> None:
        """Let requests pass whose grammars were compiled meanwhile."""
        self._gate.open()

    @property
    def busy(self) -> bool:
        """Return whether a step would do something."""
        return self._scheduler.busy

    def step(self) -> Report[SequenceOutput]:
        """Generate the next tokens of the sequences that run."""
        return self._scheduler.step()

    def load(self) -> EngineLoad:
        """Return how full the KV cache is, and how many run and wait."""
        return self._scheduler.load()

    def _fits(self, request: SequenceRequest) -> bool:
        generation = request.generation
        if not len(generation.prompt) or generation.max_tokens < 1 or generation.beams < 1:
            return False
        tokens = len(generation.prompt) + generation.max_tokens
        return tokens <= self._pool.max_length(generation.beams)
