"""Vectors of texts, by the process that makes them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ovchat_server.backoff import Backoff
from ovchat_server.domain.errors import InternalError, OverloadedError, UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.pooling_engine import SupervisedPoolingEngine
from ovchat_server.engine.contract.engine import ANONYMOUS, Caller
from ovchat_server.engine.contract.pooling_engine import TokenizedText
from ovchat_server.engine.contract.spec import EngineOptions
from tests import pooling
from tests.engine.conftest import WatchedProcess, at_once, loaded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from ovchat_server.engine.contract.messages import Report
    from ovchat_server.engine.contract.pooling_messages import PoolingOutput, PoolingSpec

DEADLY = "tests.pooling:load"
# Of the model that is used throughout: how far sums in another order may be off.
CLOSE = 1e-5


@dataclass
class Watched(WatchedProcess):
    """An engine whose changes and reports a test can wait for."""

    spec: PoolingSpec
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    reports: list[Report[PoolingOutput]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = SupervisedPoolingEngine(self.spec, self.changed.set, Backoff(at_once))
        self._reported = asyncio.Event()
        in_flight = self.engine.supervisor.in_flight
        self._deliver, in_flight.deliver = in_flight.deliver, self._take  # type: ignore[method-assign]

    def _take(self, report: Report[PoolingOutput]) -> None:
        self._deliver(report)
        self.reports.append(report)
        self._reported.set()

    async def until_report(self, wanted: Callable[[Report[PoolingOutput]], bool]) -> None:
        """Until a report comes, from now on, that is wanted."""
        seen = len(self.reports)
        while not any(map(wanted, self.reports[seen:])):
            self._reported.clear()
            await self._reported.wait()

    async def idle(self) -> None:
        """Until the process has nothing to do, and the server nothing in flight."""
        while (load := self.engine.status.load) is None or (
            load.running_requests or load.waiting_requests
        ):
            self._reported.clear()
            await self._reported.wait()
        assert not self.engine.supervisor.in_flight._in_flight

    async def pool(
        self, texts: Sequence[Sequence[int]], caller: Caller = ANONYMOUS, **how: Any
    ) -> list[pooling.Floats]:
        asked = [TokenizedText.of(text) for text in texts]
        return [*map(pooling.numbers, await self.engine.pool(asked, caller, **how))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pooling.write_model(tmp_path_factory.mktemp("models") / "hidden")


@contextlib.asynccontextmanager
async def running(folder: Path, **changes: Any) -> AsyncIterator[Watched]:
    async with loaded(Watched(pooling.spec(folder, **changes))) as watched:
        yield watched


@pytest.fixture
async def watched(folder: Path) -> AsyncIterator[Watched]:
    async with running(folder, worker=DEADLY) as watched:
        yield watched


def texts(*lengths: int, seed: int = 0) -> list[list[int]]:
    """Texts of such lengths, of no token that breaks anything."""
    chance = random.Random(f"{lengths} {seed}")
    return [chance.choices(range(pooling.DEADLY_TOKEN), k=length) for length in lengths]


CROWD = texts(3, 1, 40, 17, 9, 8, 200, 33, 2, 5, 300, 64, 12, 11, 10, 1)


def close(got: Sequence[pooling.Floats], wanted: Sequence[pooling.Floats]) -> bool:
    pairs = zip(got, wanted, strict=True)
    return all(np.allclose(*pair, rtol=CLOSE, atol=CLOSE) for pair in pairs)


def right(asked: Sequence[Sequence[int]], got: Sequence[pooling.Floats], how: str = "mean") -> bool:
    """Return whether each vector is its own text's."""
    return close(got, [pooling.vector(text, how) for text in asked])


@pytest.mark.parametrize(
    "how", ["cls", "lasttoken", "max", "mean", "mean_sqrt_len_tokens", "weightedmean"]
)
async def test_vectors_are_pooled(folder: Path, how: str) -> None:
    async with running(folder, pooling=how) as watched:
        alone = [(await watched.pool([text]))[0] for text in CROWD]
        assert right(CROWD, alone, how)
        assert right(CROWD, await watched.pool(CROWD), how)
        together = await watched.together(*(watched.pool([text]) for text in CROWD))
        assert right(CROWD, [only for [only] in together], how)
        assert watched.engine.size == pooling.SIZE


async def test_a_graph_may_pool_by_itself(tmp_path: Path) -> None:
    async with running(pooling.write_model(tmp_path, "graph"), pooling="graph") as watched:
        assert right(CROWD, await watched.pool(CROWD))


async def test_a_language_model_gives_the_logits_of_answers(tmp_path: Path) -> None:
    model = pooling.write_model(tmp_path, "language")
    changes = {"pooling": "lasttoken", "answer_tokens": pooling.ANSWERS}
    async with running(model, **changes) as watched:
        wanted = [pooling.answers(text) for text in CROWD]
        # Again: what it read before must not count.
        for _ in range(2):
            got = await watched.pool(CROWD)
            assert all(
                np.allclose(*pair, rtol=1e-4, atol=1e-4) for pair in zip(got, wanted, strict=True)
            )
        assert watched.engine.size == len(pooling.ANSWERS)


async def test_vectors_are_cut_and_then_normalized(watched: Watched) -> None:
    cut = [pooling.vector(text)[:5] for text in CROWD]
    assert close(await watched.pool(CROWD, dimensions=5), cut)
    wanted = [part / np.linalg.norm(part) for part in cut]
    assert close(await watched.pool(CROWD, dimensions=5, normalize=True), wanted)


async def test_requests_share_batches_and_none_is_larger_than_allowed(watched: Watched) -> None:
    asked = [texts(8, seed=number) for number in range(60)]
    got = await watched.together(*(watched.pool(text) for text in asked))
    assert all(itertools.starmap(right, zip(asked, got, strict=True)))
    sizes = [len(report.outputs) for report in watched.reports if report.outputs]
    # 256 tokens hold 32 texts of 8; the first was taken alone, if it was.
    assert max(sizes) == 32
    assert sum(sizes) == 60


async def test_who_is_cancelled_leaves_nothing_behind(watched: Watched) -> None:
    asked = asyncio.create_task(watched.pool(texts(*[100] * 200)))
    await watched.until_report(lambda report: bool(report.outputs))
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert right(CROWD, await watched.pool(CROWD))
    await watched.idle()


async def test_a_death_costs_no_vector_that_was_there(watched: Watched) -> None:
    crowd = texts(*range(1, 200))
    asked = asyncio.create_task(watched.pool(crowd))
    others = [asyncio.create_task(watched.pool(texts(30, 9, seed=seed))) for seed in range(9)]
    await watched.until_report(lambda report: bool(report.outputs))
    watched.kill()
    assert right(crowd, await asked)
    got = await asyncio.gather(*others)
    assert all(right(texts(30, 9, seed=seed), one) for seed, one in enumerate(got))
    computed = [
        index
        for report in watched.reports
        for output in report.outputs
        if output.id == 1
        for index, _ in output.vectors
    ]
    assert sorted(computed) == [*range(199)]


async def test_what_a_process_dies_of_fails_and_the_others_go_on(watched: Watched) -> None:
    deadly = asyncio.create_task(watched.pool([*texts(9, 9), [1, pooling.DEADLY_TOKEN]]))
    others = [asyncio.create_task(watched.pool([text])) for text in CROWD]
    with pytest.raises(InternalError, match="crashed several times"):
        await deadly
    got = [(await other)[0] for other in others]
    assert right(CROWD, got)


async def test_a_text_that_breaks_its_batch_fails_alone(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    process = watched.pid
    broken = watched.pool([*texts(3, 30), [1, pooling.BROKEN_TOKEN, 2], *texts(8)])
    others = [watched.pool([text]) for text in CROWD]

    async def failure() -> list[pooling.Floats]:
        with pytest.raises(InternalError, match="because of the request"):
            await broken
        return []

    _, *got = await watched.together(failure(), *others)
    assert right(CROWD, [only for [only] in got])
    assert "Reshape" in caplog.text
    with pytest.raises(InternalError):
        await watched.pool([[pooling.BROKEN_TOKEN]])
    assert watched.pid == process
    await watched.idle()


async def test_too_many_are_refused(folder: Path) -> None:
    async with running(folder, options=EngineOptions(max_queue=2)) as watched:
        with watched.held():
            asked = [asyncio.create_task(watched.pool(CROWD)) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError):
                watched.engine.check_queue()
            with pytest.raises(OverloadedError):
                await watched.pool(CROWD)
        for answer in asked:
            assert right(CROWD, await answer)


async def test_clients_take_turns(watched: Watched) -> None:
    greedy, modest = Caller("greedy"), Caller("modest")
    done: list[str] = []

    async def ask(caller: Caller, count: int) -> list[pooling.Floats]:
        # One text fills a batch.
        got = await watched.pool(texts(*[200] * count), caller)
        done.append(caller.client)
        return got

    await watched.together(ask(greedy, 50), ask(greedy, 50), ask(modest, 20))
    assert done == ["modest", "greedy", "greedy"]
    computed = [output.id for report in watched.reports for output in report.outputs]
    # All of the modest one's, each behind one of the greedy one's at most.
    assert computed[:40].count(3) >= 19


@pytest.mark.slow
async def test_every_vector_is_its_own_texts_whatever_happens(folder: Path) -> None:
    options = EngineOptions(max_queue=5000, max_queue_wait=600)
    async with running(folder, worker=DEADLY, options=options, max_batch_tokens=64) as watched:
        chance = random.Random(1)
        crowds = [
            texts(*chance.choices(range(1, 60), k=chance.randint(1, 40)), seed=number)
            for number in range(2000)
        ]
        asked = [
            asyncio.create_task(watched.pool(crowd, Caller(str(number % 16), number % 3)))
            for number, crowd in enumerate(crowds)
        ]
        for round_number in range(1, 201):
            await watched.until_report(lambda report: bool(report.outputs))
            chance.choice(asked).cancel()
            if not round_number % 20:
                watched.kill()
        got = await asyncio.gather(*asked, return_exceptions=True)
        came = [
            (crowd, vectors)
            for crowd, vectors in zip(crowds, got, strict=True)
            if not isinstance(vectors, asyncio.CancelledError)
        ]
        assert len(came) >= 1800
        assert all(right(crowd, vectors) for crowd, vectors in came)  # type: ignore[arg-type]
        await watched.idle()


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("hidden", {"pooling": "graph"}, "no output that is a row per text, but last_hidden_state"),
        ("language", {}, "no output last_hidden_state or token_embeddings for pooling 'mean'"),
        ("hidden", {"answer_tokens": (1, 2)}, "no output logits of a language model"),
        ("language", {"answer_tokens": (1, 300)}, "the token 300 is none of its 300"),
        ("hidden", {"device": "NOWHERE"}, "set device to one that is here (CPU), not 'NOWHERE': "),
        ("hidden", {"properties": {"NONSENSE": 1}}, "correct the property NONSENSE: "),
        ("hidden", {"path": "/nowhere"}, "export or copy openvino_model.xml and .bin anew: "),
    ],
)
async def test_what_cannot_be_loaded_says_why(
    tmp_path: Path, kind: pooling.Kind, changes: dict[str, Any], words: str
) -> None:
    model = pooling.write_model(tmp_path, kind)
    watched = Watched(pooling.spec(**{"path": model} | changes))
    watched.engine.start()
    await watched.until(ModelState.FAILED)
    assert words in watched.engine.status.reason
    with pytest.raises(UnavailableError):
        await watched.pool(CROWD)
    with pytest.raises(UnavailableError):
        watched.engine.check_queue()
    assert watched.engine.size == 0
    await watched.engine.close()


async def test_a_graph_that_asks_for_more_than_texts_is_refused(tmp_path: Path) -> None:
    watched = Watched(pooling.spec(pooling.write_model(tmp_path, "picture")))
    watched.engine.start()
    await watched.until(ModelState.FAILED)
    assert "its graph asks for 'pixel_values', which" in watched.engine.status.reason
    await watched.engine.close()
