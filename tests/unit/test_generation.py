"""Sequences under way: news merged for slow readers, given up one by one or together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from ovchat_server.domain.errors import InternalError, UnavailableError
from ovchat_server.engine.client.generation_stream import EngineGenerationStream
from ovchat_server.engine.contract.generation import GeneratedTokens, TokenFinish
from ovchat_server.engine.contract.generation_messages import SequenceOutput
from ovchat_server.engine.contract.messages import BROKEN, MISATTRIBUTED, REFUSED
from ovchat_server.engine.contract.times import RequestTimes
from ovchat_server.telemetry.logs import RequestIdFilter, request_id

GONE = UnavailableError("There is no engine.", retry_after=1)


@dataclass
class Engine:
    """What a generation tells the engine's client."""

    sequences: dict[int, range]
    cancelled: list[int] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generation = EngineGenerationStream(
            self.sequences, self.cancelled.append, self.forgotten.append, RequestTimes()
        )

    def say(self, identifier: int, *tokens: int, index: int = 0, finish: str | None = None) -> None:
        logprobs = [-float(token) for token in tokens]
        self.generation.put(SequenceOutput(identifier, index, list(tokens), logprobs, finish))


def piece(index: int, *tokens: int, finish: TokenFinish | None = None) -> GeneratedTokens:
    return GeneratedTokens(index, tokens, finish, tuple(-float(token) for token in tokens))


def three() -> Engine:
    """Three sampled choices."""
    return Engine({11: range(1), 12: range(1, 2), 13: range(2, 3)})


def searching() -> Engine:
    """A search for three sequences, and a sampled choice."""
    return Engine({11: range(3), 12: range(3, 4)})


async def taken(generation: EngineGenerationStream) -> list[GeneratedTokens]:
    return [item async for item in generation]


async def test_a_fast_reader_gets_every_piece() -> None:
    engine = three()
    for number in range(3):
        engine.say(12, number)
        assert await anext(engine.generation) == piece(1, number)


async def test_a_slow_reader_gets_one_larger_piece_of_each_sequence() -> None:
    engine = three()
    for number in range(4):
        engine.say(11, number)
        engine.say(13, number + 10)
    engine.say(13, finish="length")
    assert await anext(engine.generation) == piece(0, 0, 1, 2, 3)
    assert await anext(engine.generation) == piece(2, 10, 11, 12, 13, finish=TokenFinish.LENGTH)


async def test_a_larger_piece_has_all_that_was_proposed() -> None:
    engine = three()
    for accepted, rejected in ((1, 4), (5, 0), (0, 2)):
        output = SequenceOutput(12, 0, [7], [], None, accepted=accepted, rejected=rejected)
        engine.generation.put(output)
    found = await anext(engine.generation)
    assert (found.accepted, found.rejected) == (6, 6)


async def test_the_sequence_that_waited_longest_is_next() -> None:
    engine = three()
    engine.say(13, 1)
    engine.say(11, 2)
    engine.say(13, 3)
    assert [(await anext(engine.generation)).index for _ in range(2)] == [2, 0]


async def test_a_reader_waits_for_news() -> None:
    engine = three()
    reading = asyncio.ensure_future(anext(engine.generation))
    await asyncio.sleep(0)
    assert not reading.done()
    engine.say(12, 5)
    assert await reading == piece(1, 5)
    again = asyncio.ensure_future(anext(engine.generation))
    await asyncio.sleep(0)
    assert not again.done()
    engine.say(11, 6)
    assert await again == piece(0, 6)


async def test_it_ends_when_all_sequences_have_ended() -> None:
    engine = three()
    for identifier in (12, 11, 13):
        engine.say(identifier, 1, finish="stop")
    with engine.generation as generation:
        pieces = await taken(generation)
        assert [(item.index, item.finish) for item in pieces] == [
            (1, TokenFinish.STOP),
            (0, TokenFinish.STOP),
            (2, TokenFinish.STOP),
        ]
    # What has ended by itself needs no word to the engine.
    assert engine.cancelled == []
    assert engine.forgotten == [11, 12, 13]


async def test_the_sequences_of_a_search_share_an_id_and_are_told_apart() -> None:
    engine = searching()
    engine.say(12, 9)
    for index in range(3):
        engine.say(11, index, index=index, finish="stop")
    engine.say(12, 8, finish="length")
    assert await taken(engine.generation) == [
        piece(3, 9, 8, finish=TokenFinish.LENGTH),
        *(piece(index, index, finish=TokenFinish.STOP) for index in range(3)),
    ]


async def test_one_sequence_can_be_given_up() -> None:
    engine = three()
    with engine.generation as generation:
        generation.end(1)
        assert engine.cancelled == [12]
        # On its way already, or the last word: neither is heard any more.
        engine.say(12, 5)
        engine.say(12, 6, finish="stop")
        engine.say(11, 1, finish="stop")
        engine.say(13, 2, finish="stop")
        assert [item.index for item in await taken(generation)] == [0, 2]
    assert engine.cancelled == [12]
    assert engine.forgotten == [11, 12, 13]


async def test_what_was_not_read_of_a_sequence_that_is_given_up_is_gone() -> None:
    engine = three()
    engine.say(12, 5)
    engine.generation.end(1)
    reading = asyncio.ensure_future(anext(engine.generation))
    await asyncio.sleep(0)
    assert not reading.done()
    engine.say(11, 1)
    assert await reading == piece(0, 1)


async def test_giving_up_the_last_sequence_ends_it() -> None:
    engine = three()
    for index in range(3):
        engine.generation.end(index)
    assert engine.cancelled == [11, 12, 13]
    assert await taken(engine.generation) == []


async def test_a_search_goes_on_while_one_of_its_sequences_is_wanted() -> None:
    engine = searching()
    engine.generation.end(0)
    engine.generation.end(2)
    assert engine.cancelled == []
    engine.generation.end(1)
    assert engine.cancelled == [11]


async def test_leaving_gives_up_what_is_open_and_forgets_all() -> None:
    engine = three()
    with engine.generation as generation:
        engine.say(12, 1, finish="stop")
        assert await anext(generation) == piece(1, 1, finish=TokenFinish.STOP)
    assert engine.cancelled == [11, 13]
    assert engine.forgotten == [11, 12, 13]


async def test_leaving_by_an_error_does_the_same() -> None:
    engine = searching()

    def fail() -> None:
        with engine.generation:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert engine.cancelled == [11, 12]
    assert engine.forgotten == [11, 12]


async def test_a_sequence_that_was_given_up_is_not_given_up_again() -> None:
    engine = three()
    with engine.generation as generation:
        generation.end(0)
    assert engine.cancelled == [11, 12, 13]


async def test_a_dead_engine_is_unavailable_after_all_that_it_said() -> None:
    engine = three()
    engine.say(11, 1)
    engine.say(12, 2, finish="stop")
    engine.generation.fail(GONE)
    assert await anext(engine.generation) == piece(0, 1)
    assert await anext(engine.generation) == piece(1, 2, finish=TokenFinish.STOP)
    for _ in range(2):
        with pytest.raises(UnavailableError) as caught:
            await anext(engine.generation)
        assert caught.value.retry_after == 1


async def test_a_dead_engine_wakes_who_waits() -> None:
    engine = three()
    reading = asyncio.ensure_future(anext(engine.generation))
    await asyncio.sleep(0)
    engine.generation.fail(GONE)
    with pytest.raises(UnavailableError):
        await reading


async def test_a_dead_engine_takes_nothing_from_an_answer_that_is_whole() -> None:
    engine = Engine({11: range(1)})
    engine.say(11, 1, finish="length")
    engine.generation.fail(GONE)
    assert await taken(engine.generation) == [piece(0, 1, finish=TokenFinish.LENGTH)]


@pytest.mark.parametrize(
    ("finish", "told"),
    [
        (REFUSED, "refused the request"),
        (BROKEN, "failed because of the request"),
        (MISATTRIBUTED, "could not tell the request's tokens from those of another; send it again"),
    ],
)
async def test_a_failed_request_is_our_fault_and_logged_under_its_id(
    finish: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = three()
    engine.generation.put(SequenceOutput(12, 0, [], [], finish, reason="a step failed"))

    async def ask() -> None:
        request_id.set("r-12")
        await anext(engine.generation)

    with caplog.filtering(RequestIdFilter()), pytest.raises(InternalError, match=told):
        await asyncio.create_task(ask())
    [record] = caplog.records
    assert vars(record)["reason"] == "a step failed"
    assert vars(record)["request_id"] == "r-12"
