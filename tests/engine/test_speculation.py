"""With proposals a step may give several tokens, and all are those that come without."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation
from ovchat_server.grammar.formats import grammar_text
from tests.effort import scaled
from tests.engine.conftest import Watched, engine, request
from tests.engine.subject import TOKENIZER
from tests.engine.test_control_in_batches import alone, same
from tests.grammars import format_of
from tests.successor import FIRST, LAST, successor_text

# A step holds what is proposed to few sequences at once, and the pool no more than a few.
EDGE = {"kv_blocks": 24, "max_num_batched_tokens": 96}
AT_ONCE, GIVEN_UP = 60, 0.2
LOOKUP = Speculation(5, 3)


def quoting(chance: random.Random, length: int) -> str:
    """A prompt that holds pieces of what the model says after it, and others that mislead."""
    pieces = []
    while sum(map(len, pieces)) < length:
        start = chance.choice([FIRST, chance.randint(FIRST, LAST)])
        pieces.append(successor_text(chr(start), chance.choice([1, 2, 5, 20, 60])))
    return "".join(pieces)[:length]


def proposing(chance: random.Random, asked: GenerationRequest) -> GenerationRequest:
    least = 0 if asked.beam_search else 1
    speculation = Speculation(least * chance.choice([1, 2, 5, 20, 32]), chance.choice([1, 3, 9]))
    return dataclasses.replace(asked, speculation=speculation)


async def test_all_tokens_are_right_where_steps_and_pool_are_full() -> None:
    """Requests of all lengths at once, some of them given up: each token is known."""
    chance, room = random.Random(8), asyncio.Semaphore(AT_ONCE)
    accepted = rejected = 0

    async def one(watched: Watched) -> None:
        nonlocal accepted, rejected
        text, length = quoting(chance, chance.randint(1, 250)), chance.randint(1, 150)
        patience = chance.randint(0, 20) if chance.random() < GIVEN_UP else length
        asked = proposing(chance, request(text, length, ignore_eos=True))
        tokens: list[int] = []
        async with room:
            with watched.engine.generate([asked]) as generation:
                async for piece in generation:
                    tokens += piece.tokens
                    accepted, rejected = accepted + piece.accepted, rejected + piece.rejected
                    if len(tokens) > patience:
                        break
        wanted = successor_text(text, length)
        assert bytes(tokens).decode() == wanted[: len(tokens)]
        assert len(tokens) == length or len(tokens) > patience

    async with engine(**EDGE, speculation="lookup") as watched:
        await asyncio.gather(*(one(watched) for _ in range(scaled(600))))
        load = watched.load
        await watched.idle()
    assert load.preemptions > 0
    assert min(accepted, rejected) > 0


QUESTIONS = (
    "Repeat: sun moon sun moon river sun",
    "Extract name and age as JSON: Anna is 31.",
    "Count to 40",
    "Tell me a story.",
    "What is 17 + 25?",
)
WORDS = Constraint(ConstraintKind("regex"), "[a-z]{3,20} [a-z ]{20,60}", FieldPath())
GRAMMAR = grammar_text(format_of(WORDS))


def asked_of_demo() -> list[GenerationRequest]:
    """Whatever may be asked for with a sampled answer."""
    samplings = [
        Sampling(),
        Sampling(temperature=0.8, seed=3),
        Sampling(temperature=1.5, top_p=0.9, top_k=20, seed=5),
        Sampling(temperature=1.0, min_p=0.05, repetition_penalty=1.1, seed=7),
        Sampling(temperature=0.7, presence_penalty=0.5, frequency_penalty=0.4, seed=9),
        Sampling(temperature=0.9, bias=((300, 2.0),), banned=((301,), (302, 303)), seed=11),
    ]
    asked = []
    for number, (question, sampling) in enumerate(itertools.product(QUESTIONS, samplings)):
        text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        asked.append(
            GenerationRequest(
                Prompt(tuple(TOKENIZER.encode(text))),
                60,
                sampling,
                logprobs=number % 3 > 0,
                top_logprobs=4 * (number % 3 == 1),
                prompt_logprobs=1 if number % 7 == 1 else None,
                min_tokens=20 * (number % 5 == 4),
                ignore_eos=number % 4 == 3,
                grammar="" if number % 5 == 4 or number % 4 == 3 or number % 6 < 5 else GRAMMAR,
            )
        )
    return asked


async def test_each_token_is_the_one_that_comes_without() -> None:
    """The same numbers are drawn for it, whatever was proposed, and the same is told of it."""
    chance = random.Random(3)
    demo = {"path": "models/demo", "name": "demo", "end_tokens": (2,), "kv_blocks": 512}
    asked = asked_of_demo()
    async with engine(**demo) as plain:
        expected = [await alone(plain, item) for item in asked]
    async with engine(**demo, speculation="lookup") as speculating:
        got = await speculating.together(
            *(alone(speculating, proposing(chance, item)) for item in asked)
        )
    for one, wanted in zip(got, expected, strict=True):
        same(one, wanted)


def proposals(text: list[int]) -> list[int]:
    """What is looked up for a text, as genai does (generate_candidates)."""
    for size in range(min(LOOKUP.max_ngram_size, len(text) // 2), 0, -1):
        for start in range(len(text) - size):
            if text[start : start + size] == text[-size:]:
                behind = start + size
                return text[behind : behind + LOOKUP.num_assistant_tokens]
    return []


async def test_nobody_finds_what_was_read_for_tokens_that_were_wrong() -> None:
    """A prompt that goes on with them is answered as without; so is the next turn."""
    chance = random.Random(1)
    demo = {"path": "models/demo", "name": "demo", "end_tokens": (2,), "kv_blocks": 128}

    def asked(prompt: list[int], speculation: Speculation, length: int = 4) -> GenerationRequest:
        return GenerationRequest(
            Prompt(tuple(prompt)), length, ignore_eos=True, logprobs=True, speculation=speculation
        )

    async with engine(**demo) as plain, engine(**demo, speculation="lookup") as speculating:
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
