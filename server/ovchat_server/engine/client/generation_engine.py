"""An engine that generates tokens: its process, its requests, and the check of its grammars."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.generation_stream import EngineGenerationStream
from ovchat_server.engine.client.grammar_process import GrammarProcess
from ovchat_server.engine.client.mask_budget import MaskBudget
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.generation import GenerationStatus
from ovchat_server.engine.contract.generation_messages import (
    GenerationLimits,
    SequenceOutput,
    SequenceRequest,
    generation_decoder,
)
from ovchat_server.engine.contract.messages import FAILURES
from ovchat_server.engine.contract.observer import Unobserved
from ovchat_server.engine.contract.times import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.backoff import Backoff
    from ovchat_server.engine.client.in_flight_requests import InFlightRequests
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.contract.generation_engine import GenerationStream
    from ovchat_server.engine.contract.generation_spec import GenerationSpec
    from ovchat_server.engine.contract.observer import EngineObserver


class SupervisedGenerationEngine:
    """See contract.generation_engine.GenerationEngine. Starts with `start`, ends with `close`."""

    def __init__(
        self,
        spec: GenerationSpec,
        on_change: Callable[[], None],
        backoff: Backoff | None = None,
        observer: EngineObserver[SequenceOutput] | None = None,
    ) -> None:
        """Generate with the engine of `spec`; see EngineSupervisor."""
        self._observer: EngineObserver[SequenceOutput] = observer or Unobserved()
        self.supervisor: EngineSupervisor[SequenceRequest, SequenceOutput, GenerationLimits] = (
            EngineSupervisor(spec, generation_decoder(), self._changed, backoff, self._observer)
        )
        self._grammar_process = GrammarProcess(spec)
        self._mask_budget = MaskBudget(spec, self.supervisor.in_flight)
        self.supervisor.in_flight.on_report = self._mask_budget.note
        self._on_change = on_change

    def start(self) -> None:
        """Begin; returns at once."""
        self.supervisor.start()

    async def close(self) -> None:
        """End the engine and wait for its processes."""
        await self.supervisor.close()
        await self._mask_budget.close()
        await self._grammar_process.close()

    @property
    def status(self) -> GenerationStatus:
        """See engine.contract.generation_engine.GenerationEngine."""
        now, ready = self.supervisor.status, self.supervisor.ready
        if ready is None:
            return GenerationStatus(now.state, now.reason, now.load)
        return GenerationStatus(
            now.state,
            now.reason,
            now.load,
            now.capabilities,
            ready.limits.context_length,
            ready.limits.search_lengths,
        )

    async def check_grammar(self, grammar: str, caller: Caller = ANONYMOUS) -> str:
        """See engine.contract.generation_engine.GenerationEngine."""
        slow = self._mask_budget.refusal(grammar, caller.client)
        return slow or await self._grammar_process.check(grammar, caller)

    def check_queue(self, caller: Caller = ANONYMOUS) -> None:
        """See engine.contract.generation_engine.GenerationEngine."""
        self.supervisor.in_flight.check_queue(caller)

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        caller: Caller = ANONYMOUS,
        times: RequestTimes | None = None,
    ) -> GenerationStream:
        """See engine.contract.generation_engine.GenerationEngine."""
        self.supervisor.check_ready()
        if any(request.grammar for request in requests):
            self._mask_budget.check(caller.client)
        return start_generation(
            self.supervisor.in_flight, requests, caller, times, self._observer.prompt_read
        )

    def _changed(self) -> None:
        self._on_change()
        if self.supervisor.status.state is ModelState.READY:
            # Later, and the first to ask would wait for it.
            self._grammar_process.start()


def start_generation(
    in_flight: InFlightRequests[SequenceRequest, SequenceOutput],
    requests: Sequence[GenerationRequest],
    caller: Caller,
    times: RequestTimes | None = None,
    prompt_read: Callable[[int, int | None], None] = lambda _tokens, _cached: None,
) -> EngineGenerationStream:
    """Start the sequences of requests that belong together; `prompt_read` as EngineObserver's.

    Raises:
        OverloadedError: The queue is full.
    """
    started: list[_ResumableSequences] = []
    sequences: dict[int, range] = {}
    index = 0
    for generation in requests:
        request = SequenceRequest(
            in_flight.new_id(),
            generation,
            client=caller.client,
            priority=caller.shared_priority,
            own_priority=caller.priority,
        )
        started.append(_ResumableSequences(request, prompt_read))
        sequences[request.id] = range(index, index + generation.sequences)
        index += generation.sequences
    stream = EngineGenerationStream(
        sequences, in_flight.cancel, in_flight.forget, times or RequestTimes()
    )
    in_flight.start(started, stream, caller)
    return stream


@dataclass(slots=True)
class _ResumableSequences:
    """See in_flight_requests.ResumableRequest.

    Attributes:
        prompt_read: Is told once that its prompt was read.
        generated: The tokens so far; empty for a beam search, which reports them when it ends.
        ran: The most steps that a beam search took in a process that died.
    """

    request: SequenceRequest
    prompt_read: Callable[[int, int | None], None]
    was_read: bool = False
    generated: list[int] = field(default_factory=list)
    ran: int = 0

    def note(self, output: SequenceOutput) -> None:
        """Remember the tokens of a sequence."""
        if not self.was_read and output.finish not in FAILURES:
            self.was_read = True
            self.prompt_read(len(self.request.generation.prompt), output.cached)
        if self.request.generation.beams == 1:
            self.generated += output.tokens

    def remaining(self, steps: int, *, suspect: bool) -> SequenceRequest:
        """Return the request with the tokens so far; a beam search starts over."""
        if self.request.generation.beams > 1:
            self.ran = max(self.ran, steps)
        return msgspec.structs.replace(
            self.request, generated=tuple(self.generated), suspect=suspect, ran=self.ran
        )
