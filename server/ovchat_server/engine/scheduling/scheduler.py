"""Schedules sequences: KV blocks are counted before the pipeline gets a sequence.

genai must never find its KV cache full: then it can hand one request's tokens to another
(reproduced on 2026.4.1), or drop requests that did no wrong. So the blocks that the running
sequences hold, and may need for the next step, stay within the pool. A sequence with a limit of
its length is admitted when there is room for all of it, others when there is room for the prompt;
when one of them cannot get its next block, the youngest is preempted, and resumes later.

A sequence whose whole answer follows a grammar cannot be resumed: the grammar would start anew. It
is not preempted, so those that run together may need at most the whole pool. What they do not use
yet is free to others, which are preempted when it is needed. A sequence that may call tools in free
text resumes with a grammar for the rest, once that is compiled. Inside a call there is none: those
are preempted last, and start again where they started before.
"""

from __future__ import annotations

import itertools
import sys
import time
from typing import TYPE_CHECKING

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.generation_messages import SequenceOutput
from ovchat_server.engine.contract.messages import BROKEN, MISATTRIBUTED, REFUSED, Report
from ovchat_server.engine.contract.prompt import cache_salts
from ovchat_server.engine.scheduling.admission import Admission
from ovchat_server.engine.scheduling.cached_prefixes import KnownPrefixes
from ovchat_server.engine.scheduling.cancelled import CancelledSequences
from ovchat_server.engine.scheduling.filled_blocks import FilledBlocks
from ovchat_server.engine.scheduling.prompt_reader import PromptReader
from ovchat_server.engine.scheduling.resume_grammars import ResumeGrammars
from ovchat_server.engine.scheduling.sequence import ScheduledSequence
from ovchat_server.engine.scheduling.waiting import WaitingLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation import PromptScore
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.kv_pool import KvPool
    from ovchat_server.engine.scheduling.step_budget import StepBudget
    from ovchat_server.engine.scheduling.steps import Pipeline

# How often a sequence that the engine dropped without cause is added again.
MAX_DROPS = 3


class Scheduler:
    """Admits, steps, preempts and cancels."""

    def __init__(
        self,
        pipeline: Pipeline,
        pool: KvPool,
        budget: StepBudget,
        isolate: Callable[[int | None], None],
        compiled: Callable[[str], bool | None],
    ) -> None:
        """Schedule over a pool of KV blocks.

        Args:
            pipeline: Is stepped.
            pool: Its pool.
            budget: What its steps may read.
            isolate: Reports the id of a suspect before the first step that it takes part in, and
                None when it is no suspect any more, or gone.
            compiled: As ResumeGrammars'.
        """
        self._pipeline = pipeline
        self._pool = pool
        known = KnownPrefixes(pool.total, pool.block_size)
        self._reader = PromptReader(pipeline, known, budget)
        self._filled = FilledBlocks(known)
        # Oldest first: the youngest is at the end.
        self._running: list[ScheduledSequence] = []
        self._waiting = WaitingLine()
        self._cancelled = CancelledSequences()
        self._refused: list[SequenceOutput] = []
        self._admitted: list[int] = []
        self._preempted: list[int] = []
        self._resumed: list[int] = []
        self._cache_salts = cache_salts()
        self._isolate = isolate
        self._resume_grammars = ResumeGrammars(pipeline.text, compiled)
        self._admission = Admission(pool, self._waiting, self._resume_grammars)
        self._peak_batch_size = 0
        self._generated_tokens = 0
        self._preemptions = 0

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        if self._running or self._cancelled.blocks or self._refused:
            return True
        return len(self._waiting) > 0 and not self._resume_grammars.missing

    @property
    def needs_grammar(self) -> bool:
        """Whether a sequence in the pipeline, or about to be added, needs its compiled grammar."""
        running = any(item.needs_grammar for item in self._running)
        return running or self._cancelled.need_grammar

    def add(self, request: SequenceRequest) -> None:
        """Add a sequence; it runs when there is room and it is its turn."""
        self._waiting.add(ScheduledSequence(request))
        self._resume_grammars.look_again()

    def cancel(self, identifier: int) -> None:
        """Cancel a sequence. One that has ended is no error."""
        self._resume_grammars.look_again()
        for sequence in self._running:
            if sequence.request.id == identifier:
                self._stop(sequence)
                return
        self._waiting.cancel(identifier)

    def refuse(self, identifier: int, reason: str, finish: str = REFUSED) -> None:
        """Report in the next step that a sequence failed, and why."""
        self._refused.append(SequenceOutput(identifier, 0, [], [], finish, reason=reason))

    def step(self) -> Report[SequenceOutput]:
        """Preempt, admit, step, and report what the step generated.

        Raises:
            Exception: The pipeline fails whatever runs, or cannot be trusted any more.
        """
        self._preempt()
        # The pipeline may drop a sequence that is added in the step that frees another's
        # blocks (genai 2026.4.1), so those go first.
        if not self._cancelled.blocks:
            for sequence, grammar in self._admission.newcomers(self._running):
                self._admit(sequence, grammar)
            self._begin()
        start = time.perf_counter()
        try:
            self._pipeline.step(self._pool.total - self._held())
        except Exception as error:
            if not self._pipeline.computed:
                # The prefix cache may have blocks under names of what was never written.
                raise
            self._recover(error)
        else:
            seconds = time.perf_counter() - start
            self._reader.stepped(None if self._pipeline.proposed else seconds)
        self._cancelled.stepped()
        # The youngest first: so the oldest of several that were dropped is the next again.
        collected = [outputs for item in self._running[::-1] if (outputs := self._collect(item))]
        if self._waiting.suspects:
            for sequence in [item for item in self._running if not item.suspect]:
                # A suspect ran alone: make room for the next one.
                self._preempt_one(sequence)
        refused, self._refused = self._refused, []
        admitted, self._admitted = self._admitted, []
        preempted, self._preempted = self._preempted, []
        resumed, self._resumed = self._resumed, []
        self._peak_batch_size = max(self._peak_batch_size, len(collected))
        outputs = [*refused, *itertools.chain(*collected)]
        sampling = self._pipeline.sampling_seconds
        return Report(outputs, self.load(), admitted, preempted, resumed, sampling)

    def load(self) -> EngineLoad:
        """Return how full the engine is."""
        return EngineLoad(
            running_requests=len(self._running),
            waiting_requests=len(self._waiting),
            # The next step preempts where the look-ahead does not fit.
            used_kv_blocks=min(self._held(), self._pool.total),
            total_kv_blocks=self._pool.total,
            peak_batch_size=self._peak_batch_size,
            generated_tokens=self._generated_tokens,
            preemptions=self._preemptions,
        )

    def _held(self) -> int:
        """Return the blocks that running and cancelled sequences hold or may need in a step."""
        return sum(map(self._pool.held, self._running)) + self._cancelled.blocks

    def _preempt(self) -> None:
        while len(self._running) > 1 and self._held() - self._cancelled.freed > self._pool.total:
            self._preempt_one(self._admission.preemptible(self._running))

    def _preempt_one(self, sequence: ScheduledSequence) -> None:
        self._stop(sequence)
        self._waiting.add(sequence)
        self._preempted.append(sequence.request.id)
        self._preemptions += 1

    def _admit(self, sequence: ScheduledSequence, grammar: str | None) -> None:
        request = sequence.request
        sequence.go_on(grammar, self._cache_salts)
        self._reader.take(sequence)
        self._running.append(sequence)
        (self._resumed if sequence.has_run else self._admitted).append(request.id)
        sequence.has_run = True
        if sequence.suspect:
            self._isolate(request.id)

    def _begin(self) -> None:
        """Have prompts read, and add the sequences whose prompts end in this step."""
        inside = [item for item in self._running if item.handle is not None]
        for sequence in self._reader.feed(inside):
            try:
                sequence.handle = self._pipeline.add(
                    sequence.added, sequence.answered, sequence.scores
                )
            except Exception as error:  # noqa: BLE001  the pipeline checks before it takes in
                self._leave(sequence)
                self.refuse(sequence.request.id, f"the pipeline: {error}")

    def _recover(self, error: Exception) -> None:
        """Resume all sequences after a failed step, except the one that makes it fail.

        Which one did is not known. So all become suspects, each of which runs on its own until it
        comes further; the one that throws then fails. A fault that shows later makes all of them
        suspects again, but they are further on each time, up to where it shows at once.
        """
        reason = f"a step failed: {type(error).__name__}: {error}"
        sys.stderr.write(f"{reason}\n")
        for sequence in self._running[:]:
            broke_at = sequence.steps
            self._stop(sequence, read=True)
            if sequence.suspect:
                self.refuse(sequence.request.id, reason, BROKEN)
            else:
                sequence.suspect, sequence.broke_at = True, broke_at
                self._waiting.add(sequence)
        # Cancels them.
        self._pipeline.step()

    def _stop(self, sequence: ScheduledSequence, *, read: bool = False) -> None:
        """Cancel a running sequence; its blocks are free after the next step, or a later one."""
        runs = sequence.handle or self._reader.piece(sequence)
        # The slices of a prompt are read without.
        constrained = sequence.handle is not None and sequence.needs_grammar
        held = self._pool.held(sequence)
        self._cancelled.give_up(runs, held, read=read, constrained=constrained)
        self._leave(sequence)

    def _leave(self, sequence: ScheduledSequence) -> None:
        self._running.remove(sequence)
        if sequence.handle is None:
            self._reader.drop(sequence)
        else:
            self._reader.keep(sequence)
        sequence.handle = None
        sequence.steps = 0
        if sequence.suspect:
            self._isolate(None)
        # There is room again for one that waited for nothing else.
        self._resume_grammars.look_again()

    def _collect(self, sequence: ScheduledSequence) -> list[SequenceOutput]:
        if sequence.handle is None:
            return []
        sequence.steps += 1
        outputs = sequence.take(sequence.handle)
        misattributed = bool(outputs) and outputs[0].finish == MISATTRIBUTED
        if outputs and sequence.repeated and not misattributed:
            # It follows a grammar, so it is no beam search.
            [output] = outputs
            count = sequence.repeats(output.tokens, ended=output.finish is not None)
            if count < 0:
                # Its tokens so far stand, cut off.
                self._stop(sequence)
                return [SequenceOutput(sequence.request.id, 0, [], [], "length")]
            outputs = [output.without(count)] if count < len(output.tokens) else []
        for output in outputs:
            self._generated_tokens += len(output.tokens)
            sequence.tokens += output.tokens
            self._filled.note(sequence)
        searched = sequence.request.generation.beams > 1 and sequence.steps > sequence.broke_at
        if sequence.suspect and (outputs or searched):
            sequence.suspect = False
            self._isolate(None)
        if outputs and outputs[0].runs:
            # The pipeline knows nothing of it.
            self._stop(sequence)
        elif outputs and outputs[0].finish is not None:
            self._leave(sequence)
        elif not outputs and sequence.handle.dropped():
            self._offer_again(sequence)
        scores: list[PromptScore] = []
        if outputs and sequence.scores and not misattributed:
            scores, sequence.scores = sequence.scores.gathered, None
        return sequence.report(outputs, scores)

    def _offer_again(self, sequence: ScheduledSequence) -> None:
        sequence.drops += 1
        self._leave(sequence)
        if sequence.drops > MAX_DROPS:
            self.refuse(sequence.request.id, "the pipeline kept dropping it", BROKEN)
        else:
            self._waiting.add(sequence)
