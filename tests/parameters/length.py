"""What the parameters do that say how long prompt and answer are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.parameters.case import Effect, Fields, of_both, said, written
from tests.parameters.endpoints import SUM, WEATHER
from tests.parameters.generation import COUNT, GREET, becomes, both

if TYPE_CHECKING:
    from tests.parameters.answers import Answer

ENDS: tuple[Fields, Fields] = (
    said("abcxyz", "successor", max_tokens=4),
    written("abcxyz", "successor", max_tokens=4),
)
# All but 4 tokens of the model's context.
FULL: tuple[Fields, Fields] = (
    said("x" * 4088 + "abcd", "successor", max_tokens=2),
    written("x" * 4088 + "abcd", "successor", max_tokens=2),
)


def _cut_to_the_room(without: Answer, given: Answer) -> bool:
    return (without.text, given.text, given.choices[0].finish) == ("ef", "efgh", "length")


def _ended(without: Answer, given: Answer) -> bool:
    return (without.choices[0].finish, without.tokens) == ("length", 8) and (
        given.choices[0].finish == "stop"
    )


EFFECTS: list[Effect] = [
    *of_both("max_tokens", COUNT, {"max_tokens": 3}, becomes("defghijk", "def")),
    *of_both("max_tokens", FULL, {"max_tokens": 2**32 - 1}, _cut_to_the_room, "beyond the room"),
    *of_both(
        "max_tokens", both(FULL, best_of=2), {"max_tokens": 4096}, _cut_to_the_room, "of beams"
    ),
    Effect(
        "text", "max_tokens", FULL[1], {"max_tokens": None}, _cut_to_the_room, "absent, beyond it"
    ),
    Effect(
        "chat",
        "max_completion_tokens",
        FULL[0],
        {"max_completion_tokens": 32_000},
        _cut_to_the_room,
        "beyond the room",
    ),
    Effect(
        "chat",
        "max_tokens",
        said("abc", "successor", max_tokens=None, stop=["z"]),
        {"max_tokens": 3},
        becomes("defghijklmnopqrstuvwxy", "def"),
        "absent is no limit",
    ),
    Effect(
        "text",
        "max_tokens",
        written("abc", "successor", max_tokens=None),
        {"max_tokens": 3},
        becomes("defghijklmnopqrs", "def"),
        "absent is 16",
    ),
    Effect(
        "text",
        "max_tokens",
        written("abc", "successor", echo=True),
        {"max_tokens": 0},
        lambda _, given: (
            (given.text, given.tokens, given.choices[0].finish) == ("abc", 0, "length")
        ),
        "0 with echo",
    ),
    Effect(
        "chat",
        "max_completion_tokens",
        COUNT[0],
        {"max_completion_tokens": 2},
        becomes("defghijk", "de"),
        "wins over max_tokens",
    ),
    *of_both(
        "min_tokens",
        GREET,
        {"min_tokens": 20},
        lambda without, given: without.tokens == 14 and given.tokens >= 20,
    ),
    *of_both(
        "min_tokens",
        both(COUNT, stop=["f", "i"]),
        {"min_tokens": 4},
        becomes("de", "defgh"),
        "a stop text before it is text",
    ),
    *of_both(
        "min_tokens",
        both(COUNT, stop_token_ids=[ord("f")]),
        {"min_tokens": 4},
        lambda without, given: (
            without.text == "de" and given.tokens > 4 and "f" not in given.text[:4]
        ),
        "no stop token before it",
    ),
    *of_both(
        "ignore_eos",
        GREET,
        {"ignore_eos": True},
        lambda without, given: (
            (without.choices[0].finish, without.tokens) == ("stop", 14)
            and (given.choices[0].finish, given.tokens) == ("length", 24)
        ),
    ),
    *of_both(
        "ignore_eos",
        both(GREET, stop_token_ids=[1529, 1527]),
        {"ignore_eos": True},
        lambda without, given: (
            (without.tokens, without.choices[0].stop_reason) == (14, None)
            and (given.tokens, given.choices[0].stop_reason) == (14, 1529)
        ),
        "stop tokens still end the answer",
    ),
    *of_both(
        "stop",
        COUNT,
        {"stop": "fg"},
        lambda without, given: (
            _ended(without, given) and (given.text, given.choices[0].stop_reason) == ("de", "fg")
        ),
        "a string",
    ),
    *of_both(
        "stop",
        COUNT,
        {"stop": ["zz", "ij", "hi"]},
        lambda without, given: (
            _ended(without, given) and (given.text, given.choices[0].stop_reason) == ("defg", "hi")
        ),
        "an array",
    ),
    Effect(
        "chat",
        "stop",
        SUM,
        {"stop": ["carry", "\n"]},
        lambda without, given: "carry" in without.choices[0].reasoning and given == without,
        "is not looked for in reasoning",
    ),
    Effect(
        "chat",
        "stop",
        said("What is the weather in Paris?", tools=[WEATHER], tool_choice="required"),
        {"stop": ["<tool_call>", '{"', "city"]},
        lambda without, given: without.choices[0].calls and given == without,
        "is not looked for in calls",
    ),
    *of_both(
        "stop_token_ids",
        COUNT,
        {"stop_token_ids": [1, ord("f")]},
        lambda without, given: (
            _ended(without, given)
            and (given.text, given.choices[0].stop_reason) == ("de", ord("f"))
        ),
    ),
    *of_both(
        "include_stop_str_in_output",
        both(COUNT, stop="fg"),
        {"include_stop_str_in_output": True},
        becomes("de", "defg"),
        "a text",
    ),
    *of_both(
        "include_stop_str_in_output",
        both(COUNT, stop_token_ids=[ord("f")]),
        {"include_stop_str_in_output": True},
        becomes("de", "def"),
        "a token",
    ),
    *of_both(
        "skip_special_tokens",
        both(GREET, ignore_eos=True, max_tokens=16),
        {"skip_special_tokens": False},
        lambda without, given: (
            "<|im_end|>" not in without.text and given.text == without.text + "<|im_end|>" * 3
        ),
    ),
    *of_both(
        "skip_special_tokens",
        GREET,
        {"skip_special_tokens": False},
        lambda without, given: (
            given.text == without.text + "<|im_end|>" and given.tokens == without.tokens
        ),
        "shows the end token",
    ),
    *of_both(
        "skip_special_tokens",
        both(COUNT, stop_token_ids=[ord("f")]),
        {"skip_special_tokens": False},
        becomes("de", "de"),
        "a stop token is none",
    ),
    *of_both(
        "truncate_prompt_tokens",
        ENDS,
        {"truncate_prompt_tokens": 2},
        lambda without, given: (
            (without.prompt_tokens, given.prompt_tokens) == (6, 2)
            and without.text == given.text == "{|}~"
        ),
    ),
    *of_both(
        "truncate_prompt_tokens",
        both(ENDS, truncation_side="right"),
        {"truncate_prompt_tokens": -1, "max_tokens": 4093, "stop": "h"},
        lambda without, given: (
            (without.text, given.prompt_tokens) == ("{|}~", 3) and given.text == "defg"
        ),
        "-1 leaves room for max_tokens",
    ),
    *of_both(
        "truncation_side",
        both(ENDS, truncate_prompt_tokens=3),
        {"truncation_side": "right"},
        becomes("{|}~", "defg"),
    ),
]
