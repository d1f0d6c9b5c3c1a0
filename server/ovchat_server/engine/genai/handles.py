"""Sequences inside genai's pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import openvino_genai as genai

from ovchat_server.engine.scheduling.steps import Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.engine.genai.logits_control import LogitsControl, RunningSequence

FINISH = {
    genai.GenerationFinishReason.STOP: "stop",
    genai.GenerationFinishReason.LENGTH: "length",
}


def new_outputs(handle: genai.GenerationHandle) -> Iterator[genai.GenerationOutput]:
    """Yield what came of a handle's sequences since it was last read."""
    # read() on an empty queue blocks for ever, holding the GIL.
    while handle.can_read():
        yield from handle.read().values()


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
    def unread(self) -> int:
        """The number of tokens that a step reads of it, of each beam."""
        return 1

    @property
    def cached(self) -> int | None:
        """The number of tokens that the prefix cache had of the prompt; None: not known."""
        return self._sequence.cached

    @property
    def shared(self) -> None:
        """How many of its tokens others may find: all."""
        return None

    def own_from(self, place: int) -> None:
        """Do nothing: it is never added anew."""

    def take(self) -> list[Output]:
        """Return the tokens since the last call."""
        tokens: list[int] = []
        logprobs: list[float] = []
        finish = None
        for output in new_outputs(self._handle):
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
