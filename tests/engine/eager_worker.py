"""An engine that proposes whatever it finds, though it may not be worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from ovchat_server.engine.contract.generation_spec import GenerationSpec
from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.speculator import Candidate, Speculator
from ovchat_server.engine.scheduling.worker import GenerationWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.contract.worker import WorkerContext

EAGER = f"{__name__}:load"
CandidateT = TypeVar("CandidateT", bound=Candidate)


class EagerSpeculator(Speculator):
    def propose(
        self,
        running: int,
        candidates: Sequence[CandidateT],
        room: int,
        finding: Callable[[int, int], float],
    ) -> list[tuple[CandidateT, int]]:
        del running, finding
        chosen, room = [], room - sum(item.unread for item in candidates)
        for item in candidates:
            again = item.known - item.unread
            count = min(len(item.chances()), room - again)
            if count > 0:
                room -= count + again
                chosen.append((item, count))
        return chosen


def load(spec: bytes, context: WorkerContext) -> GenerationWorker:
    decoded = msgspec.msgpack.decode(spec, type=GenerationSpec)
    return GenerationWorker(GenaiPipeline(decoded, EagerSpeculator()), decoded, context)
