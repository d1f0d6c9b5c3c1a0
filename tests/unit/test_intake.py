"""What the server says is checked once more: one request fails, never the engine."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.frames import LENGTH, encode
from ovchat_server.engine.contract.generation import BeamSearch
from ovchat_server.engine.contract.generation_messages import (
    SequenceOutput,
    SequenceRequest,
    generation_decoder,
)
from ovchat_server.engine.contract.generation_spec import GenerationSpec
from ovchat_server.engine.contract.messages import NO_CAPABILITIES, REFUSED, Cancel, Report, Start
from ovchat_server.engine.process.intake import Intake
from ovchat_server.engine.scheduling.worker import GenerationWorker
from tests.sequence_requests import sequence_request
from tests.unit.scheduler_tools import BLOCK, Pipeline

# Six blocks of four tokens, but for those that are kept free.
ROOM = 18
SPEC = GenerationSpec(name="it", path="", context_length=100, end_tokens=())
LOAD = EngineLoad(0, 0, 0, 0, 0, 0, 0)


class LoadedPipeline(Pipeline):
    capabilities = NO_CAPABILITIES
    total_blocks = 6
    weight_bytes = cache_bytes = 0
    block_size = BLOCK

    @property
    def grammar_compiler(self) -> Any:
        return None


class WorkerContext:
    """A process that nobody waits for."""

    def wake(self) -> None:
        pass

    def isolate(self, identifier: int | None) -> None:
        pass


class Engine:
    """A worker that does nothing."""

    def __init__(self) -> None:
        self.decoder = generation_decoder()
        self.added: list[int] = []
        self.cancelled: list[int] = []
        self.intake = Intake(self)  # type: ignore[arg-type]

    def add(self, request: SequenceRequest) -> None:
        self.added.append(request.id)

    def cancel(self, identifier: int) -> None:
        self.cancelled.append(identifier)

    def start(self, *requests: SequenceRequest) -> None:
        self.intake.take(encode(Start(requests))[LENGTH.size :])


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(sequence_request(1, (), 5), id="no prompt"),
        pytest.param(sequence_request(1, (7,), 0), id="no answer"),
        pytest.param(sequence_request(1, (7,) * 10, 9), id="too long"),
        pytest.param(
            sequence_request(1, (7,) * 5, 4, beam_search=BeamSearch(2, 1)),
            id="too long for its beams",
        ),
    ],
)
def test_what_cannot_run_is_refused_and_the_others_go_on(request_: SequenceRequest) -> None:
    worker = GenerationWorker(LoadedPipeline(6), SPEC, WorkerContext())
    assert worker.ready.limits.search_lengths[:2] == (ROOM, 6)
    worker.add(request_)
    worker.add(sequence_request(2, (7,) * 10, 8, ignore_eos=True))
    finished: dict[int, tuple[str, str]] = {}
    while worker.busy:
        for output in worker.step().outputs:
            if output.finish:
                finished[output.id] = (output.finish, output.reason)
    assert finished == {1: (REFUSED, "it cannot fit"), 2: ("length", "")}


def test_who_has_an_id_keeps_it_until_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine()
    engine.start(sequence_request(1, (7,), 5))
    engine.start(sequence_request(1, (8,), 5))
    assert engine.added == [1]
    assert capsys.readouterr().err == "the id 1 is in use already\n"

    engine.intake.note(Report([SequenceOutput(1, 0, [9], [], None)], LOAD, []))
    engine.start(sequence_request(1, (8,), 5))
    assert engine.added == [1]

    engine.intake.note(Report([SequenceOutput(1, 0, [], [], "stop")], LOAD, []))
    engine.start(sequence_request(1, (8,), 5))
    assert engine.added == [1, 1]


def test_a_cancelled_id_is_free() -> None:
    engine = Engine()
    engine.start(sequence_request(1, (7,), 5))
    engine.intake.take(encode(Cancel(1))[LENGTH.size :])
    engine.start(sequence_request(1, (8,), 5))
    assert (engine.cancelled, engine.added) == ([1], [1, 1])


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"\x80", b"\x81\xa4type\xa4none"])
def test_a_frame_that_is_no_command_is_passed_over(
    frame: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Engine()
    engine.intake.take(frame)
    engine.start(sequence_request(1, (7,), 5))
    assert engine.added == [1]
    assert capsys.readouterr().err.startswith("a frame is no command: ")
