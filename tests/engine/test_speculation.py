"""With proposals a step may give several tokens, and all are those that come without.

Whatever is found is proposed here: whether that is worth its time depends on the machine.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from collections import Counter
from typing import Any

import pytest

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.contract.generation import (
    BeamSearch,
    GenerationRequest,
    ReasoningBudget,
    Sampling,
)
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation
from ovchat_server.engine.genai.grammar_followers import FOLLOWERS
from ovchat_server.engine.scheduling.prompt_lookup import PromptLookup
from ovchat_server.grammar.formats import grammar_text
from tests.chi_square import UNLIKELY, surprise
from tests.conftest import ROOT
from tests.effort import scaled
from tests.engine.conftest import Watched, engine, request
from tests.engine.eager_worker import EAGER
from tests.engine.subject import TOKENIZER
from tests.engine.test_control_in_batches import alone, given_up, same
from tests.grammars import format_of
from tests.successor import FIRST, LAST, successor_text

SPECULATING = {"speculation": "lookup", "worker": EAGER}


def drafting(folder: object) -> dict[str, Any]:
    """Options of an engine to which the model in a folder proposes tokens."""
    return {"speculation": "draft", "draft_model": str(ROOT / str(folder)), "worker": EAGER}


# A step holds what is proposed to few sequences at once, and the pool no more than a few.
EDGE: dict[str, Any] = {"kv_blocks": 24, "max_num_batched_tokens": 96}
AT_ONCE, GIVEN_UP = 60, 0.2
LOOKUP = Speculation(32, 3)
DEMO = {"path": "models/demo", "name": "demo", "end_tokens": (2,), "kv_blocks": 512}


def quoting(chance: random.Random, length: int) -> str:
    """A prompt that holds pieces of what the model says after it, and others that mislead."""
    pieces = []
    while sum(map(len, pieces)) < length:
        start = chance.choice([FIRST, chance.randint(FIRST, LAST)])
        pieces.append(successor_text(chr(start), chance.choice([1, 2, 5, 20, 60])))
    return "".join(pieces)[:length]


def proposing(chance: random.Random, asked: GenerationRequest) -> GenerationRequest:
    least = 0 if asked.beam_search else 1
    count, size = least * chance.choice([1, 2, 5, 20, 32]), chance.choice([1, 3, 9])
    speculation = Speculation(count, size, chance.choice([0.0, 0.0, 0.5]))
    prediction = tuple(quoting(chance, chance.choice([0, 0, 1, 60])).encode())
    return dataclasses.replace(asked, speculation=speculation, prediction=prediction)


@pytest.mark.parametrize(
    "how", [SPECULATING, drafting("models/successor")], ids=["lookup", "draft"]
)
async def test_all_tokens_are_right_where_steps_and_pool_are_full(how: dict[str, Any]) -> None:
    """Requests of all lengths at once, some given up, and the engine dies: each token is known."""
    chance, room = random.Random(8), asyncio.Semaphore(AT_ONCE)
    accepted = rejected = 0
    ended = itertools.count(1)

    async def one(watched: Watched) -> None:
        nonlocal accepted, rejected
        text, length = quoting(chance, chance.randint(1, 250)), chance.randint(1, 150)
        patience = chance.randint(0, 20) if chance.random() < GIVEN_UP else length
        stop = chr(chance.randint(FIRST, LAST))
        asked = proposing(chance, request(text, length, stop_tokens=(ord(stop),)))
        tokens: list[int] = []
        async with room:
            with watched.engine.generate([asked]) as generation:
                async for piece in generation:
                    tokens += piece.tokens
                    accepted, rejected = accepted + piece.accepted, rejected + piece.rejected
                    if len(tokens) > patience:
                        break
        before, end, _ = successor_text(text, length).partition(stop)
        assert bytes(tokens).decode() == (before + end)[: len(tokens)]
        assert len(tokens) == len(before + end) or len(tokens) > patience
        if next(ended) == AT_ONCE:
            watched.kill()

    async with engine(**EDGE, **how) as watched:
        await asyncio.gather(*(one(watched) for _ in range(scaled(600))))
        load = watched.load
        await watched.idle()
    assert load.preemptions > 0
    assert accepted > 0
    # The draft model is the model itself.
    assert rejected > 0 or how is not SPECULATING


async def test_prompts_with_the_same_beginning_take_no_blocks_from_each_other() -> None:
    """Some speculate; others end within the block in which those go on."""
    chance = random.Random(4)
    text = quoting(chance, 90)

    async def one(watched: Watched) -> None:
        begun, length = text[: chance.randint(1, 90)], chance.randint(1, 60)
        asked = request(begun, length, ignore_eos=True)
        [got] = await alone(watched, proposing(chance, asked) if chance.random() < 0.5 else asked)
        assert got.text == successor_text(begun, length)

    async with engine(**EDGE, **SPECULATING) as watched:
        await asyncio.gather(*(one(watched) for _ in range(scaled(200))))
        await watched.idle()


QUESTIONS = (
    "Repeat: sun moon sun moon river sun",
    "Extract name and age as JSON: Anna is 31.",
    "Count to 40",
    "Tell me a story.",
    "What is 17 + 25?",
)
THOUGHT = tuple(TOKENIZER.encode("\n</think>"))
WORDS = Constraint(ConstraintKind("regex"), "[a-z]{3,20} [a-z ]{20,60}", FieldPath())
GRAMMAR = grammar_text(format_of(WORDS))
NAMES = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"enum": ["sun", "moon", "river"]}}},
    "required": ["names"],
    "additionalProperties": False,
}
OBJECT = grammar_text(format_of(Constraint(ConstraintKind("json_schema"), NAMES, FieldPath())))


def question(text: str) -> Prompt:
    text = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    return Prompt(tuple(TOKENIZER.encode(text)))


def asked_of_demo() -> list[GenerationRequest]:
    """Whatever may be asked for with an answer that is certain."""
    samplings = [
        Sampling(),
        Sampling(repetition_penalty=1.1),
        Sampling(presence_penalty=0.5, frequency_penalty=0.4),
        Sampling(bias=((300, 2.0),), banned=((301,), (302, 303))),
        # Of one token nothing is left to draw.
        Sampling(temperature=1.0, top_k=1, seed=3),
    ]
    asked = []
    for number, (text, sampling) in enumerate(itertools.product(QUESTIONS, samplings)):
        endless = number % 4 == 3
        asked.append(
            GenerationRequest(
                question(text),
                60,
                sampling,
                logprobs=number % 3 > 0,
                top_logprobs=4 * (number % 3 == 1),
                prompt_logprobs=1 if number % 7 == 1 else None,
                min_tokens=20 * (number % 5 == 4),
                ignore_eos=endless,
                grammar=GRAMMAR if number % 6 == 5 and number % 5 < 4 and not endless else "",
            )
        )
    bounded = [
        GenerationRequest(question(QUESTIONS[-1]), 60, Sampling(reasoning=budget), logprobs=True)
        for budget in (ReasoningBudget(tokens, "<think>", THOUGHT) for tokens in (0, 7, 20))
    ]
    search = BeamSearch(width=3, returned=2)
    return [*asked, *bounded, GenerationRequest(question(QUESTIONS[0]), 20, beam_search=search)]


async def test_each_token_is_the_one_that_comes_without() -> None:
    """Alone, and beside others."""
    chance = random.Random(3)
    asked = asked_of_demo()
    async with engine(**DEMO) as plain:
        expected = [await alone(plain, item) for item in asked]
    async with engine(**DEMO, **SPECULATING) as speculating:
        got = [await alone(speculating, proposing(chance, item)) for item in asked]
        got += await speculating.together(
            *(alone(speculating, proposing(chance, item)) for item in asked)
        )
    for one, wanted in zip(got, expected * 2, strict=True):
        same(one, wanted)


async def test_answers_with_a_grammar_are_those_without_proposals_sampled_ones_too() -> None:
    """More of them than are followed at once, whose places are free again after each."""
    speculation, chance = Speculation(8, 1), random.Random(2)
    asked = [
        GenerationRequest(
            question(text), 60, sampling, logprobs=True, grammar=grammar, self_terminating=True
        )
        for text in QUESTIONS
        for grammar in (GRAMMAR, OBJECT)
        for sampling in (
            Sampling(),
            Sampling(temperature=1.5, seed=chance.randrange(1000)),
            Sampling(temperature=2.0, top_p=0.9, presence_penalty=0.5, seed=1),
        )
    ]

    async def accepted(watched: Watched, item: GenerationRequest) -> int:
        with watched.engine.generate([item]) as generation:
            return sum([piece.accepted async for piece in generation])

    async with engine(**DEMO) as plain, engine(**DEMO, **SPECULATING) as speculating:
        expected = [await alone(plain, item) for item in asked]
        proposed_to = [dataclasses.replace(item, speculation=speculation) for item in asked]
        got = [await alone(speculating, item) for item in proposed_to]
        got += await speculating.together(*(alone(speculating, item) for item in proposed_to))
        await asyncio.gather(*(given_up(speculating, item, 12) for item in proposed_to))
        right = [await accepted(speculating, item) for item in proposed_to]
    for one, wanted in zip(got, expected * 2, strict=True):
        same(one, wanted)
    assert sum(count > 0 for count in right) > FOLLOWERS


# As warm as the model becomes unsure.
SAMPLED = (
    Sampling(temperature=2.3),
    Sampling(temperature=3.0, top_p=0.9, top_k=12),
    Sampling(temperature=2.6, min_p=0.03, presence_penalty=0.5),
)


async def test_sampled_tokens_follow_the_models_own_distribution() -> None:
    """Those behind 16 others, which were proposed, or came in place of others that were."""
    # Of a block, so that all are read in one step.
    prompt = question("Repeat: sun moon river sun moon river sun moon tree sun moon")
    assert len(prompt) == 32
    often = Speculation(4, 1)

    async def answers(watched: Watched, asked: GenerationRequest) -> tuple[Counter[str], int]:
        sampling = asked.sampling
        requests = [
            dataclasses.replace(asked, sampling=dataclasses.replace(sampling, seed=seed))
            for seed in range(scaled(1500) + 30)
        ]
        tokens: list[list[int]] = [[] for _ in requests]
        proposed = 0
        with watched.engine.generate(requests) as generation:
            async for piece in generation:
                tokens[piece.index] += piece.tokens
                proposed += piece.accepted + piece.rejected
        return Counter(str(answer[16:18]) for answer in tokens), proposed

    # With room for all at once, and for blocks of their own.
    demo = DEMO | {"max_num_batched_tokens": 1 << 16, "kv_blocks": 1 << 13}
    async with (
        engine(**demo) as plain,
        engine(**demo, **SPECULATING) as looking_up,
        engine(**demo, **drafting("models/demo")) as drafted,
    ):
        for sampling in SAMPLED:
            asked = GenerationRequest(prompt, 18, sampling, ignore_eos=True)
            expected, _ = await answers(plain, asked)
            for speculating in (looking_up, drafted):
                got, proposed = await answers(
                    speculating, dataclasses.replace(asked, speculation=often)
                )
                assert proposed > 2 * got.total()
                assert surprise(expected, got) < UNLIKELY


def proposals(text: list[int]) -> list[int]:
    """What is found for a text."""
    lookup = PromptLookup(text, LOOKUP.max_ngram_size)
    return [*lookup.proposal(LOOKUP.num_assistant_tokens)]


async def test_nobody_finds_what_was_read_for_tokens_that_were_wrong() -> None:
    """A prompt that goes on with them is answered as without; so is the next turn."""
    chance = random.Random(1)

    def asked(prompt: list[int], speculation: Speculation, length: int = 4) -> GenerationRequest:
        return GenerationRequest(
            Prompt(tuple(prompt)), length, ignore_eos=True, logprobs=True, speculation=speculation
        )

    async with engine(**DEMO) as plain, engine(**DEMO, **SPECULATING) as speculating:
        for _ in range(scaled(30) + 10):
            words = [chance.randrange(300, 1500) for _ in range(6)]
            prompt = [chance.choice(words) for _ in range(chance.randrange(40, 60))]
            [first] = await alone(speculating, asked(prompt, LOOKUP, 40))
            whole = prompt + first.tokens
            # Up to the end of the block into which the first wrong proposal was written.
            right = next(
                length
                for length in range(len(prompt) + 1, len(whole) + 1)
                if proposals(whole[:length]) != whole[length : length + LOOKUP.num_assistant_tokens]
            )
            wrong = [*whole[:right], *proposals(whole[:right])]
            for beginning in (wrong[: len(wrong) // 32 * 32], whole):
                going_on = [*beginning, *chance.choices(words, k=5)]
                got = await alone(speculating, asked(going_on, LOOKUP))
                same(got, await alone(plain, asked(going_on, NO_SPECULATION)))


async def test_the_next_turn_finds_an_answer_up_to_where_tokens_were_proposed() -> None:
    """The whole of one for which none were."""
    plain = successor_text(chr(FIRST), 40)
    # The model goes on with what stands in its prompt.
    quoting = successor_text(chr(FIRST + 40), 40) + plain
    async with engine(**SPECULATING) as watched:
        for text, least, most in ((plain, 79, 79), (quoting, 81, 96)):
            [answer] = await alone(watched, request(text, 40, speculation=LOOKUP))
            whole = text + answer.text
            [turn] = await alone(watched, request(whole, 2, speculation=LOOKUP))
            assert least <= turn.cached[0] <= most
