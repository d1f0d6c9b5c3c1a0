"""What the parameters do to sampling, choices and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.parameters.case import Effect, Fields, of_both, said, turn, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.parameters.answers import Answer

# The successor says what comes next: "defghijk".
COUNT: tuple[Fields, Fields] = (
    said("abc", "successor", max_tokens=8),
    written("abc", "successor", max_tokens=8),
)
# Always "Hello! How can I help you?", 13 tokens and the one that ends it.
GREET: tuple[Fields, Fields] = (said("Hi there!"), written(turn("Hi there!")))
# What the demo model never learned: four choices, of which hardly two are the same.
NONSENSE = "qx zzt plorb vex 9"
WILD: Fields = {"temperature": 2, "top_k": -1, "seed": 7, "n": 4, "max_tokens": 8}
VARIED: tuple[Fields, Fields] = (said(NONSENSE, **WILD), written("qx zzt plorb", **WILD))
BEAMS: Fields = {"n": 4, "best_of": 4, "max_tokens": 30}
SEARCHED: tuple[Fields, Fields] = (
    said("Hi there", **BEAMS),
    written(turn("Hi there"), **BEAMS),
)
TWICE: tuple[Fields, Fields] = (
    said(NONSENSE, n=2, max_tokens=12),
    written("qx zzt plorb", n=2, max_tokens=12),
)


def both(bases: tuple[Fields, Fields], **fields: Any) -> tuple[Fields, Fields]:
    """The requests of a chat and of a text completion, with more in them."""
    chat, text = bases
    return {**chat, **fields}, {**text, **fields}


def becomes(before: str, after: str) -> Callable[[Answer, Answer], bool]:
    """One text without the parameter, and another with it."""
    return lambda without, given: (without.text, given.text) == (before, after)


def becomes_the_likeliest(without: Answer, given: Answer) -> bool:
    return len(set(without.texts)) > 1 and len(set(given.texts)) == 1


def becomes_different(without: Answer, given: Answer) -> bool:
    return len(set(without.texts)) == 1 and len(set(given.texts)) == len(given.texts)


SAMPLING: list[Effect] = [
    *of_both(
        "temperature",
        both(VARIED, temperature=0),
        {"temperature": 2},
        lambda without, given: becomes_the_likeliest(given, without),
    ),
    *of_both("temperature", VARIED, {"temperature": 9e-6}, becomes_the_likeliest, "below 1e-5"),
    *of_both("top_p", VARIED, {"top_p": 1e-6}, becomes_the_likeliest),
    *of_both("top_k", VARIED, {"top_k": 1}, becomes_the_likeliest),
    *of_both(
        "top_k",
        VARIED,
        {"top_k": None},
        lambda without, given: without.texts != given.texts,
        "absent is not off",
    ),
    *of_both(
        "top_k",
        both(VARIED, top_k=None),
        {"top_k": 40},
        lambda without, given: without.texts == given.texts,
        "absent is 40",
    ),
    *of_both(
        "top_k",
        VARIED,
        {"top_k": 0},
        lambda without, given: without.texts == given.texts,
        "0 is off as -1 is",
    ),
    # Where nobody waits.
    *of_both("priority", VARIED, {"priority": 9}, lambda without, given: without == given),
    # What is found in the prefix cache is told apart: tests/grpc/test_keys.py.
    *of_both(
        "cache_salt",
        VARIED,
        {"cache_salt": "s"},
        lambda without, given: without.texts == given.texts,
    ),
    *of_both("min_p", VARIED, {"min_p": 0.999}, becomes_the_likeliest),
    *of_both(
        "repetition_penalty",
        (said("aaaa aaaa aaaa"), written("qx zzt plorb")),
        {"repetition_penalty": 3},
        lambda without, given: without.text != given.text,
    ),
    *of_both(
        "seed",
        VARIED,
        {"seed": 8},
        lambda without, given: (
            given.texts != without.texts and given.texts[:3] == without.texts[1:]
        ),
        "choice i takes seed + i",
    ),
    *of_both(
        "seed",
        both(VARIED, seed=5),
        {"seed": 2**33 + 5},
        lambda without, given: given.texts != without.texts,
        "all 64 bits count",
    ),
    Effect(
        "text",
        "seed",
        VARIED[1],
        {"prompt": [VARIED[1]["prompt"]] * 2, "n": 2},
        lambda without, given: given.texts == without.texts,
        "goes on from prompt to prompt",
    ),
]

CHOICES: list[Effect] = [
    *of_both(
        "n",
        COUNT,
        {"n": 3},
        lambda without, given: (
            (without.texts, given.texts) == (["defghijk"], ["defghijk"] * 3)
            and given.tokens == 3 * without.tokens
        ),
    ),
    *of_both("best_of", TWICE, {"best_of": 4}, becomes_different),
    *of_both("use_beam_search", TWICE, {"use_beam_search": True}, becomes_different),
    *of_both(
        "length_penalty",
        SEARCHED,
        {"length_penalty": -7},
        lambda without, given: given.tokens < without.tokens,
        "-7 favours shorter answers",
    ),
    *of_both(
        "length_penalty",
        both(SEARCHED, length_penalty=0),
        {"length_penalty": 7},
        lambda without, given: given.tokens > without.tokens,
        "7 favours longer answers",
    ),
]

# With and without a model that speculates the answer is the same.
SPECULATION: list[Effect] = [
    effect
    for name, value in (
        ("num_assistant_tokens", 9),
        ("max_ngram_size", 2),
        ("assistant_confidence_threshold", 0.5),
    )
    for effect in of_both(name, COUNT, {name: value}, lambda without, given: without == given)
]
SPECULATION += [
    Effect(
        "chat",
        "prediction",
        COUNT[0],
        {"prediction": {"type": "content", "content": predicted}},
        lambda without, given: without == given,
        predicted,
    )
    for predicted in ("defghijk", "defxyz")
]

STREAM: list[Effect] = [
    *of_both(
        "stream",
        # A reader that the machine keeps from reading gets few chunks: not of so many tokens.
        both(COUNT, max_tokens=1000),
        {"stream": True},
        lambda without, given: not without.usages and len(given.usages) > 3,
    ),
    *of_both(
        "stream_options",
        both(COUNT, stream=True),
        {"stream_options": {"include_usage": True}},
        lambda without, given: (
            without.usage is None and given.usages == [None] * (len(given.usages) - 1) + [(3, 8)]
        ),
        "include_usage",
    ),
    *of_both(
        "stream_options",
        both(COUNT, stream=True),
        {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
        lambda without, given: (
            without.usage is None
            and all(given.usages)
            and given.usages == sorted(given.usages)
            and given.usages[-1] == (3, 8)
        ),
        "continuous_usage_stats",
    ),
    *of_both(
        "stream_options",
        both(COUNT, stream=True),
        {"stream_options": {"continuous_usage_stats": True}},
        lambda without, given: without.choices == given.choices and given.usage is None,
        "continuous_usage_stats alone has no effect",
    ),
    *of_both(
        "stream_options",
        both(COUNT, stream=True),
        {"stream_options": {"include_obfuscation": True}},
        lambda without, given: without.choices == given.choices and given.usage is None,
        "include_obfuscation has no effect",
    ),
]

EFFECTS = [*SAMPLING, *CHOICES, *SPECULATION, *STREAM]

# Of one answer, as other APIs than OpenAI's older two give it; so long that it is hardly the
# likeliest.
ALONE: Fields = said(NONSENSE, temperature=2, top_k=-1, seed=7, max_tokens=40)
OF_ONE: list[Effect] = [
    *(
        Effect(
            "chat",
            name,
            ALONE,
            {name: value},
            lambda without, given: without.text != given.text,
            "of one answer",
        )
        for name, value in (
            ("temperature", 0),
            ("top_p", 1e-6),
            ("top_k", 1),
            ("min_p", 0.999),
            ("seed", 8),
        )
    ),
    Effect(
        "chat",
        "priority",
        ALONE,
        {"priority": 9},
        lambda without, given: without.choices == given.choices,
        "of one answer",
    ),
    Effect(
        "chat",
        "cache_salt",
        ALONE,
        {"cache_salt": "s"},
        lambda without, given: without.choices == given.choices,
        "of one answer",
    ),
    Effect(
        "chat",
        "stop_token_ids",
        COUNT[0],
        {"stop_token_ids": [1, ord("f")]},
        becomes("defghijk", "de"),
        "of one answer",
    ),
]
