"""Sequences under way, seen from the server."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InternalError
from ovchat_server.engine.contract.generation import GeneratedTokens, TokenFinish
from ovchat_server.engine.contract.messages import BROKEN, MISATTRIBUTED, REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.contract.generation import PromptScore
    from ovchat_server.engine.contract.generation_messages import SequenceOutput
    from ovchat_server.engine.contract.times import RequestTimes

logger = logging.getLogger(__name__)

_FAILURES: Mapping[str, str] = {
    REFUSED: "The model's engine refused the request",
    BROKEN: "The model's engine failed because of the request",
    MISATTRIBUTED: "The model's engine could not tell the request's tokens from those of another; "
    "send it again",
}


@dataclass(slots=True)
class _Piece:
    """Outputs of one sequence that its reader has not taken yet."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: str | None = None
    alternatives: list[list[tuple[int, float]]] = field(default_factory=list)
    prompt: list[PromptScore] = field(default_factory=list)
    reason: str = ""
    cached: int | None = None
    accepted: int = 0
    rejected: int = 0


class EngineGenerationStream:
    """See engine.contract.generation_engine.GenerationStream.

    Holds outputs until they are read, merged: a slow reader finds one larger piece a sequence,
    never a queue. What it can hold is bounded by the sequences' own lengths.
    """

    def __init__(
        self,
        sequences: Mapping[int, range],
        cancel: Callable[[int], None],
        forget: Callable[[int], None],
        times: RequestTimes,
    ) -> None:
        """Hold the outputs of some requests.

        Args:
            sequences: For the id of each request the indices of its sequences.
            cancel: Tells the engine to give a request up.
            forget: Stops the delivery of a request's outputs.
            times: When what happens to them.
        """
        self._sequences = sequences
        self._cancel = cancel
        self._forget = forget
        self.times = times
        self._open = {index for indices in sequences.values() for index in indices}
        self._pieces: dict[int, _Piece] = {}
        self._failure: ApiError | None = None
        self.admission = asyncio.Event()
        self._arrived = asyncio.Event()

    def admit(self) -> None:
        """Note that one of the requests has a place in the engine."""
        self.admission.set()

    def put(self, output: SequenceOutput) -> None:
        """Take in what a step brought of a sequence."""
        index = self._sequences[output.id][output.index]
        # Outputs of a sequence that was cancelled may still have been on their way.
        if index in self._open and not self._failure:
            piece = self._pieces.setdefault(index, _Piece())
            piece.tokens += output.tokens
            piece.logprobs += output.logprobs
            piece.alternatives += output.alternatives
            piece.prompt += output.prompt
            piece.finish = output.finish
            piece.reason = output.reason
            piece.cached = output.cached if piece.cached is None else piece.cached
            piece.accepted += output.accepted
            piece.rejected += output.rejected
            self._arrived.set()

    def fail(self, error: ApiError) -> None:
        """See engine.contract.generation_engine.GenerationStream. Only the first reason counts."""
        self._failure = self._failure or error
        self._arrived.set()

    def __enter__(self) -> Self:
        """See engine.contract.generation_engine.GenerationStream; so the others."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give up what has not ended."""
        for identifier, indices in self._sequences.items():
            self._forget(identifier)
            if not self._open.isdisjoint(indices):
                self._cancel(identifier)

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> GeneratedTokens:
        """Wait for tokens of a sequence, and return all that came since the last time."""
        if not self._open:
            raise StopAsyncIteration
        await self._arrived.wait()
        if not self._pieces and self._failure:
            raise self._failure
        # The one that has waited longest.
        index = next(iter(self._pieces))
        piece = self._take(index)
        if failure := _FAILURES.get(piece.finish or ""):
            # Here and not where the output arrived: the log has the id of the request that reads.
            extra = {"failure": failure, "reason": piece.reason}
            logger.error("%s: %s", failure, piece.reason, extra=extra)
            raise InternalError(f"{failure}. See the server's log for this request id.")
        finish = TokenFinish(piece.finish) if piece.finish else None
        if finish:
            self._open.remove(index)
        return GeneratedTokens(
            index,
            tuple(piece.tokens),
            finish,
            tuple(piece.logprobs),
            tuple(tuple(others) for others in piece.alternatives),
            tuple(piece.prompt),
            piece.cached,
            piece.accepted,
            piece.rejected,
        )

    def end(self, index: int) -> None:
        """Give up one sequence; the others go on."""
        self._take(index)
        self._open.discard(index)
        for identifier, indices in self._sequences.items():
            if index in indices and self._open.isdisjoint(indices):
                self._cancel(identifier)

    def _take(self, index: int) -> _Piece:
        piece = self._pieces.pop(index, _Piece())
        if not self._pieces and not self._failure:
            self._arrived.clear()
        return piece
