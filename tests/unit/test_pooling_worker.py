"""What the worker makes of a model's failures, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np
import pytest

from ovchat_server.engine.contract.messages import BROKEN, REFUSED
from ovchat_server.engine.contract.pooling_messages import (
    POOLED,
    PoolingInput,
    PoolingOutput,
    PoolingRequest,
)
from ovchat_server.engine.pooling.poolings import finished
from ovchat_server.engine.pooling.worker import PoolingWorker
from tests.pooling import as_input, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.engine.contract.messages import Report
    from ovchat_server.engine.pooling.model import PoolingModel
    from tests.pooling import Floats

BAD, NOT_A_NUMBER = 13, 14


@dataclass
class SumsModel:
    """The vector of a text is how many tokens it has, and their sum."""

    size: int = 2
    weight_bytes: int = 9
    lost: bool = False
    ran: list[int] = field(default_factory=list)

    def run(self, batch: Sequence[PoolingInput]) -> list[Floats]:
        texts = [np.frombuffer(text.tokens, "<i4") for text in batch]
        self.ran.append(len(texts))
        if self.lost or any(BAD in text for text in texts):
            raise RuntimeError("a bad token")
        vectors = [np.array([len(text), text.sum()], np.float32) for text in texts]
        return [
            vector * np.float32("nan" if NOT_A_NUMBER in text else 1)
            for text, vector in zip(texts, vectors, strict=True)
        ]

    def try_out(self) -> int:
        return len(self.run([as_input([0])])[0])


@dataclass
class Isolations:
    """See engine.contract.worker.WorkerContext."""

    ids: list[int | None] = field(default_factory=list)

    def wake(self) -> None:
        pass

    def isolate(self, identifier: int | None) -> None:
        self.ids.append(identifier)


def worker_of(model: SumsModel, context: Isolations | None = None) -> PoolingWorker:
    return PoolingWorker(cast("PoolingModel", model), 64, context or Isolations())


def request(identifier: int, *texts: Sequence[int]) -> PoolingRequest:
    inputs = tuple(as_input(tokens, index) for index, tokens in enumerate(texts))
    return PoolingRequest(identifier, inputs)


def run(worker: PoolingWorker) -> Iterator[Report[PoolingOutput]]:
    while worker.busy:
        yield worker.step()


def ends(worker: PoolingWorker) -> dict[int, str | None]:
    return {output.id: output.finish for report in run(worker) for output in report.outputs}


def test_requests_that_begin_are_told_of_before_they_run() -> None:
    model = SumsModel()
    worker = worker_of(model)
    worker.add(request(1, [1], [2]))
    worker.add(request(2, [3]))

    begun = worker.step()
    assert (begun.admitted, begun.outputs, model.ran) == ([1, 2], [], [])
    assert (begun.load.running_requests, begun.load.waiting_requests) == (2, 0)

    ended = worker.step()
    assert [(output.id, output.finish) for output in ended.outputs] == [(1, POOLED), (2, POOLED)]
    vectors = {index: numbers(vector).tolist() for index, vector in ended.outputs[0].vectors}
    assert vectors == {0: [1, 1], 1: [1, 2]}
    assert (ended.load.running_requests, worker.busy) == (0, False)


def test_only_the_request_with_the_bad_text_fails() -> None:
    worker = worker_of(SumsModel())
    for number, token in enumerate([1, BAD, 2]):
        worker.add(request(number, [token], [5] * 60, [5] * 60))
    assert ends(worker) == {0: POOLED, 1: BROKEN, 2: POOLED}
    assert worker.load().running_requests == 0


def test_a_bad_text_alone_fails_and_the_worker_goes_on() -> None:
    worker = worker_of(SumsModel())
    worker.add(request(1, [BAD]))
    assert ends(worker) == {1: BROKEN}


def test_where_nothing_runs_any_more_the_worker_gives_up() -> None:
    worker = worker_of(SumsModel(lost=True))
    worker.add(request(1, [1]))
    with pytest.raises(RuntimeError, match="a bad token"):
        ends(worker)


def test_a_vector_of_no_numbers_is_a_failure() -> None:
    worker = worker_of(SumsModel())
    worker.add(request(1, [NOT_A_NUMBER]))
    worker.add(request(2, [3]))
    assert ends(worker) == {1: BROKEN, 2: POOLED}


@pytest.mark.parametrize("tokens", [b"", b"\0\0\0"])
def test_a_request_with_no_tokens_is_refused(tokens: bytes) -> None:
    worker = worker_of(SumsModel())
    worker.add(PoolingRequest(1, (as_input([1]), PoolingInput(1, tokens))))
    worker.add(PoolingRequest(2, ()))
    assert ends(worker) == {1: REFUSED, 2: REFUSED}


def test_a_request_may_be_cancelled_between_its_admission_and_its_batch() -> None:
    model = SumsModel()
    worker = worker_of(model)
    worker.add(request(1, [1]))
    worker.step()
    worker.cancel(1)
    assert not worker.busy
    assert not model.ran
    assert worker.load().running_requests == 0


def test_a_suspect_is_named_while_it_runs() -> None:
    context = Isolations()
    worker = worker_of(SumsModel(), context)
    worker.add(request(1, [1]))
    worker.add(msgspec.structs.replace(request(2, [1], [1] * 60), suspect=True))
    assert ends(worker) == {1: POOLED, 2: POOLED}
    assert context.ids == [2, None, 2, None]


def test_vectors_are_cut_and_then_normalized() -> None:
    vector = np.array([3, 4, 12], np.float32)
    assert finished(vector, 0, normalize=False).tolist() == [3, 4, 12]
    assert finished(vector, 2, normalize=False).tolist() == [3, 4]
    assert finished(vector, 2, normalize=True).tolist() == pytest.approx([0.6, 0.8])
    # It has no direction.
    assert finished(0 * vector, 2, normalize=True).tolist() == [0, 0]
