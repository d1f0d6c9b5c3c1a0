"""Routes: who answers where the first model cannot."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, Usage
from ovchat_server.domain.errors import (
    ApiError,
    InvalidRequestError,
    OverloadedError,
    ProviderError,
    UnavailableError,
)
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.domain.models import ModelState, ModelStatus
from ovchat_server.serving.answer import ChunkedAnswer
from ovchat_server.serving.completion_info import completion_info
from ovchat_server.serving.completions import Completions
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.models import GenerativeModel
from ovchat_server.serving.record import begin_record
from ovchat_server.serving.routed_model import RoutedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from ovchat_server.domain.completion import CompletionInfo
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.deadline import Deadline

REQUEST = ChatRequest("route", (Message(Role.USER, ("Hi",)),))
FAILURES: Sequence[ApiError] = (
    OverloadedError("full"),
    UnavailableError("away"),
    ProviderError("nonsense"),
    InvalidRequestError.about("top_k", "is not supported."),
)


class Script(ChunkedAnswer):
    """Says its pieces; an error among them ends it."""

    def __init__(self, info: CompletionInfo, pieces: Sequence[str | ApiError]) -> None:
        super().__init__(info, 1, None)
        self._pieces = pieces
        self.admitted = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.closed = False

    async def admission(self) -> None:
        await self.admitted.wait()

    def usage(self) -> Usage:
        return Usage(1, len(self._pieces))

    async def chunks(self) -> AsyncGenerator[ChunkChoice, None]:
        try:
            for piece in self._pieces:
                await self.goes_on.wait()
                if isinstance(piece, ApiError):
                    raise piece
                yield ChunkChoice(0, Delta(content=piece))
            yield ChunkChoice(0, Delta(), finish_reason=FinishReason.STOP)
        finally:
            self.closed = True


@dataclass(frozen=True)
class Scripted(GenerativeModel):
    """A model that says so; one that refuses does so before there is an answer."""

    pieces: Sequence[str | ApiError] = ()
    refusal: ApiError | None = None
    answers: list[Script] = field(default_factory=list)
    held: bool = False
    state: ModelState = ModelState.READY
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def status(self) -> ModelStatus:
        return ModelStatus(self.id, 1, 9, (), self.state)

    async def answer(self, request: ChatRequest | TextRequest, deadline: Deadline) -> Script:  # noqa: ARG002
        if self.refusal is not None:
            raise self.refusal
        script = Script(completion_info(request, self.id, None, None, None), self.pieces)
        if self.held:
            script.goes_on.clear()
        self.answers.append(script)
        self.asked.set()
        return script


def route(*models: Scripted, weights: Sequence[float] = ()) -> RoutedModel:
    by_id = {model.id: model for model in models}
    return RoutedModel("route", [*by_id], by_id.__getitem__, weights)


def completions(*models: Scripted) -> Completions:
    registry = ModelRegistry()
    registry.add_route(route(*models))
    return Completions(registry, None)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("at_once", [True, False])
async def test_the_next_model_answers_for_one_that_cannot(
    failure: ApiError, *, at_once: bool
) -> None:
    first = Scripted("first", () if at_once else (failure,), failure if at_once else None)
    second, third = Scripted("second", ("a", "b")), Scripted("third", ("c",))
    record = begin_record()

    whole = await (await completions(first, second, third).answer(REQUEST)).whole()

    assert whole.choices[0].message.text == "ab"
    assert (whole.info.model, record.model) == ("second", "second")
    assert whole.usage == Usage(1, 2)
    assert third.answers == []


async def test_a_stream_says_who_answers() -> None:
    first, second = Scripted("first", refusal=FAILURES[0]), Scripted("second", ("a",))
    answer = await completions(first, second).answer(REQUEST)
    chunks = [chunk async for chunk in answer.stream(StreamOptions(include_usage=True))]

    assert {chunk.info.model for chunk in chunks} == {"second"}
    assert len({chunk.info.id for chunk in chunks}) == 1


async def test_one_that_fails_in_the_midst_of_its_answer_has_no_follower() -> None:
    first, second = Scripted("first", ("a", FAILURES[1])), Scripted("second", ("b",))
    with pytest.raises(UnavailableError, match="away"):
        await (await completions(first, second).answer(REQUEST)).whole()
    assert second.answers == []


async def test_where_none_can_the_last_says_why() -> None:
    models = [Scripted(str(number), (failure,)) for number, failure in enumerate(FAILURES)]
    with pytest.raises(InvalidRequestError, match="top_k"):
        await (await completions(*models).answer(REQUEST)).whole()


async def test_one_that_works_on_it_is_the_one_that_answers() -> None:
    first = Scripted("first", (FAILURES[1],), held=True)
    second = Scripted("second", ("b",))
    answer = await completions(first, second).answer(REQUEST)
    admission = asyncio.create_task(answer.admission())
    reading = asyncio.create_task(answer.whole())
    await first.asked.wait()
    [script] = first.answers
    script.admitted.set()
    await admission
    script.goes_on.set()

    with pytest.raises(UnavailableError, match="away"):
        await reading
    assert second.answers == []


async def test_the_second_is_admitted_where_the_first_failed() -> None:
    first, second = Scripted("first", (FAILURES[1],)), Scripted("second", ("b",), held=True)
    answer = await completions(first, second).answer(REQUEST)
    admission = asyncio.create_task(answer.admission())
    reading = asyncio.create_task(answer.whole())
    await second.asked.wait()
    assert not admission.done()
    second.answers[0].admitted.set()
    await admission
    second.answers[0].goes_on.set()
    assert (await reading).info.model == "second"


async def test_whoever_answers_learns_that_its_reader_left() -> None:
    first, second = Scripted("first", (FAILURES[1],)), Scripted("second", ("a", "b"))
    stream = (await completions(first, second).answer(REQUEST)).stream(StreamOptions())
    await anext(stream)
    assert not second.answers[0].closed
    await stream.aclose()
    assert second.answers[0].closed


def test_weights_say_how_often_each_is_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", random.Random(7).random)
    models = [Scripted(name) for name in ("rare", "often", "never-alone")]
    orders = [route(*models, weights=(1, 3, 4))._order() for _ in range(4000)]

    firsts = [sum(order[0] == model.id for order in orders) / 500 for model in models]
    assert firsts == pytest.approx([1, 3, 4], rel=0.1)
    assert all(len({*order}) == 3 for order in orders)


def test_a_route_comes_before_a_model_of_its_name_and_leads_to_no_route() -> None:
    model, other = Scripted("demo"), Scripted("other", state=ModelState.LOADING)
    registry = ModelRegistry([model])
    routed = RoutedModel("demo", ["demo"], registry.routed, ())  # type: ignore[arg-type]
    registry.add_route(routed)
    registry.add_route(route(other))

    assert registry.get("demo") is routed
    assert registry.routed("demo") is registry.get_as(Scripted, "") is model
    assert [status.id for status in registry.listed()] == ["demo", "route"]
    # A route that cannot be used leaves the server ready: its own models are what it has.
    assert registry.unready() == ""
