"""What a request can ask of the real engine, and that sequences never mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.models import ModelState
from ovchat_server.engine.contract.generation import BeamSearch, Sampling, TokenFinish
from tests.engine.conftest import Sequence, Watched, collect, collect_all, request, spec
from tests.successor import FIRST, LAST, successor_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.engine.contract.generation import GenerationRequest

# Far below this the model never goes by itself; a beam that leaves the path does, once.
UNLIKELY = -10.0
END = "f"


@pytest.fixture(scope="module")
async def ending() -> AsyncIterator[Watched]:
    """The successor model, which ends its answers at an "f"."""
    watched = Watched(spec(end_tokens=(ord(END),)))
    watched.engine.start()
    await watched.until(ModelState.READY)
    yield watched
    await watched.engine.close()


async def answer(watched: Watched, *requests: GenerationRequest) -> list[Sequence]:
    return await collect_all(watched.engine.generate(requests))


def successor(token: int) -> int:
    return ord(successor_text(chr(token), 1)) if FIRST <= token <= LAST else ord("a")


def deviations(prompt: str, sequence: Sequence) -> int:
    """Tokens that the model did not find likely; all others must follow from their own prefix."""
    before = [ord(prompt[-1]), *sequence.tokens]
    steps = zip(before, sequence.tokens, sequence.logprobs, strict=False)
    assert len(sequence.logprobs) == len(sequence.tokens)
    unlikely = 0
    for previous, token, logprob in steps:
        if logprob < UNLIKELY:
            unlikely += 1
        else:
            assert token == successor(previous)
    return unlikely


async def test_the_sequences_of_a_generation_are_told_apart_by_index(ending: Watched) -> None:
    prompts = [chr(ord("g") + number) for number in range(8)]
    requests = [request(prompt, 10 + number) for number, prompt in enumerate(prompts)]

    sequences = await answer(ending, *requests)

    for number, (prompt, sequence) in enumerate(zip(prompts, sequences, strict=True)):
        assert sequence.text == successor_text(prompt, 10 + number)
        assert sequence.finish is TokenFinish.LENGTH
        assert sequence.logprobs == []
    assert ending.engine.status.load is not None
    assert ending.engine.status.load.peak_batch_size >= 8


async def test_searches_and_samples_share_a_generation(ending: Watched) -> None:
    sequences = await answer(
        ending,
        request("g", 9),
        request("m", 9, beam_search=BeamSearch(width=3, returned=2), logprobs=True),
        request("s", 9),
    )

    assert [sequence.text for sequence in (sequences[0], sequences[1], sequences[3])] == [
        successor_text("g", 9),
        successor_text("m", 9),
        successor_text("s", 9),
    ]
    assert deviations("m", sequences[2]) == 1


async def test_an_answer_ends_at_the_end_token_which_is_part_of_it(ending: Watched) -> None:
    assert await collect(ending.engine.generate([request("a", 10)])) == ("bcdef", TokenFinish.STOP)


@pytest.mark.parametrize(("fewest", "length"), [(0, 5), (4, 5), (5, 10), (10, 10)])
async def test_the_end_token_does_not_come_before_the_fewest_tokens(
    ending: Watched, fewest: int, length: int
) -> None:
    [sequence] = await answer(ending, request("a", 10, min_tokens=fewest))

    assert len(sequence.tokens) == length
    assert (ord(END) in sequence.tokens) == (length == 5)


async def test_the_end_token_can_be_ignored(ending: Watched) -> None:
    [sequence] = await answer(ending, request("a", 30, ignore_eos=True))

    assert (sequence.text, sequence.finish) == (successor_text("a", 30), TokenFinish.LENGTH)


async def test_stop_tokens_end_an_answer_besides_the_models_own(ending: Watched) -> None:
    stops = (ord("z"), ord("d"))
    first, second, third = await answer(
        ending,
        request("a", 30, stop_tokens=stops),
        request("w", 30, stop_tokens=stops),
        request("d", 30, stop_tokens=stops),
    )

    assert (first.text, first.finish) == ("bcd", TokenFinish.STOP)
    assert (second.text, second.finish) == ("xyz", TokenFinish.STOP)
    assert (third.text, third.finish) == ("ef", TokenFinish.STOP)


async def test_stop_tokens_do_not_end_what_ignores_the_end(ending: Watched) -> None:
    [sequence] = await answer(ending, request("a", 9, ignore_eos=True, stop_tokens=(ord("c"),)))

    assert (sequence.text, sequence.finish) == (successor_text("a", 9), TokenFinish.LENGTH)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_every_token_has_its_log_probability(ending: Watched, temperature: float) -> None:
    sampling = Sampling(temperature=temperature)
    [sequence] = await answer(
        ending, request("g", 200, sampling=sampling, ignore_eos=True, logprobs=True)
    )

    assert len(sequence.logprobs) == len(sequence.tokens) == 200
    # The model is sure of every token.
    assert sequence.logprobs == pytest.approx([0.0] * 200, abs=1e-3)


async def test_a_forced_detour_has_the_log_probability_of_one(ending: Watched) -> None:
    [sequence] = await answer(ending, request("a", 10, min_tokens=10, logprobs=True))

    assert [logprob < UNLIKELY for logprob in sequence.logprobs] == [
        token != successor(previous)
        for previous, token in zip([ord("a"), *sequence.tokens], sequence.tokens, strict=False)
    ]
    assert min(sequence.logprobs) < UNLIKELY


async def test_a_search_returns_the_best_sequences_best_first(ending: Watched) -> None:
    search = BeamSearch(width=4, returned=3)
    sequences = await answer(ending, request("g", 40, beam_search=search, logprobs=True))

    assert len(sequences) == 3
    assert sequences[0].text == successor_text("g", 40)
    scores = [sum(item.logprobs) / len(item.tokens) for item in sequences]
    assert scores == sorted(scores, reverse=True)
    assert [deviations("g", sequence) for sequence in sequences] == [0, 1, 1]
    assert len({tuple(sequence.tokens) for sequence in sequences}) == 3
    assert {sequence.finish for sequence in sequences} == {TokenFinish.LENGTH}


async def test_the_sequences_of_a_search_end_where_each_of_them_does(ending: Watched) -> None:
    search = BeamSearch(width=4, returned=4)
    sequences = await answer(ending, request("a", 12, beam_search=search, logprobs=True))

    best, *others = sequences
    assert (best.text, best.finish) == ("bcdef", TokenFinish.STOP)
    for sequence in others:
        assert deviations("a", sequence) == 1
        ended = sequence.tokens[-1] == ord(END)
        assert (sequence.finish is TokenFinish.STOP) == ended


async def test_a_search_without_log_probabilities_has_none(ending: Watched) -> None:
    sequences = await answer(ending, request("g", 9, beam_search=BeamSearch(width=2, returned=2)))

    assert [sequence.logprobs for sequence in sequences] == [[], []]


async def test_a_search_heeds_stop_tokens(ending: Watched) -> None:
    search = BeamSearch(width=2, returned=1)
    [sequence] = await answer(ending, request("a", 12, beam_search=search, stop_tokens=(ord("c"),)))

    assert (sequence.text, sequence.finish) == ("bc", TokenFinish.STOP)


async def test_a_search_may_fill_what_it_was_promised(ending: Watched) -> None:
    for width in (2, 5):
        length = ending.engine.status.search_lengths[width - 1]
        prompt = "g" * (length - 20)
        search = BeamSearch(width=width, returned=width)
        best, *others = await answer(ending, request(prompt, 20, beam_search=search, logprobs=True))

        assert best.text == successor_text("g", 20)
        assert all(deviations("g", sequence) == 1 for sequence in others)
    await ending.idle()


async def test_promised_lengths_shrink_with_the_width(ending: Watched) -> None:
    status = ending.engine.status

    # 64 blocks of 32 tokens, one of them and two tokens in reserve.
    assert status.search_lengths[0] == status.context_length == 63 * 32 - 2
    assert status.search_lengths[1] == 31 * 32 - 2
    assert status.search_lengths[19] == 3 * 32 - 2
    assert list(status.search_lengths) == sorted(status.search_lengths, reverse=True)


async def test_a_cancelled_search_frees_its_blocks(ending: Watched) -> None:
    search = request("g", 400, beam_search=BeamSearch(width=4, returned=4))
    with ending.engine.generate([search]):
        await ending.until_load(lambda load: load.running_requests > 0)

    await ending.idle()


async def test_one_sequence_of_several_can_be_given_up(ending: Watched) -> None:
    requests = [request(prompt, 600, ignore_eos=True) for prompt in "gms"]
    texts = {0: "", 2: ""}
    with ending.engine.generate(requests) as generation:
        first = await anext(generation)
        generation.end(1)
        pieces = [first] if first.index != 1 else []
        pieces += [piece async for piece in generation]

    for piece in pieces:
        texts[piece.index] += bytes(piece.tokens).decode()
    assert texts == {0: successor_text("g", 600), 2: successor_text("s", 600)}
    await ending.idle()


@pytest.mark.slow
async def test_searches_and_samples_in_a_pool_far_too_small_all_end_right(
    watched: Watched,
) -> None:
    # Each search takes 28 of the 64 blocks at its end, each sequence 13.
    prompts = [chr(ord("A") + number) for number in range(16)]
    search = BeamSearch(width=4, returned=4)
    searches = [request(prompt, 200, beam_search=search, logprobs=True) for prompt in prompts[:8]]
    samples = [
        request(prompt, 400, sampling=Sampling(temperature=1.0, seed=number), logprobs=True)
        for number, prompt in enumerate(prompts[8:])
    ]
    mixed = [item for pair in zip(searches, samples, strict=True) for item in pair]

    answers = await watched.together(*(answer(watched, item) for item in mixed))

    for item, sequences in zip(mixed, answers, strict=True):
        prompt = bytes(item.prompt.tokens).decode()
        best, *others = sequences
        assert best.text == successor_text(prompt, item.max_tokens)
        assert best.finish is TokenFinish.LENGTH
        assert deviations(prompt, best) == 0
        assert len(others) == (3 if item.beam_search else 0)
        assert all(deviations(prompt, other) == 1 for other in others)
    load = watched.engine.status.load
    assert load is not None
    assert load.preemptions > 0
    assert (load.running_requests, load.waiting_requests, load.used_kv_blocks) == (0, 0, 0)
