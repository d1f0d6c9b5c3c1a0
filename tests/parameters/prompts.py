"""What the parameters do that tell how likely the tokens of prompts were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.parameters.case import Effect, Fields, of_both, said, written
from tests.parameters.generation import COUNT, both
from tests.parameters.logits import Q, as_any_other, likely, tokens_of

if TYPE_CHECKING:
    from tests.parameters.answers import Answer

# Behind "a" and "Q" the successor says "b" and "R".
ODD: tuple[Fields, Fields] = (
    said("aQb", "successor", max_tokens=2),
    written("aQb", "successor", max_tokens=2),
)
BOTH_ODD: Fields = {**ODD[1], "prompt": ["aQb", "abc"], "n": 2}


def _lists_the_odd(answer: Answer, tops: list[str]) -> bool:
    """Whether each choice of a prompt tells of "Q" and "b", with `tops` beside them."""
    expected = [[], ["Q", *tops[:1]], ["b", *tops[1:]]]
    return all(
        [[text for text, _, _ in items] for items in choice.prompt_logprobs] == expected
        and all(items[0][2] > 1 and as_any_other(items[0][1]) for items in told)
        and all(likely(number) and rank == 1 for _, *others in told for _, number, rank in others)
        for choice in answer.choices
        for told in [choice.prompt_logprobs[1:]]
    )


def _echoes(answer: Answer, prompt: str) -> bool:
    """Whether it begins with a prompt of which each token follows from the one before."""
    first, *others = answer.choices[0].logprobs
    return (
        answer.text.startswith(prompt)
        and "".join(token for token, _, _ in (first, *others)) == answer.text
        and first == (prompt[0], None, [])
        and all(likely(number) for _, number, _ in others)
    )


EFFECTS: list[Effect] = [
    *of_both(
        "prompt_logprobs",
        ODD,
        {"prompt_logprobs": 1},
        lambda without, given: (
            not without.choices[0].prompt_logprobs
            and given.texts == without.texts
            and _lists_the_odd(given, ["b", "R"])
        ),
        "1 is the likeliest",
    ),
    *of_both(
        "prompt_logprobs",
        both(ODD, n=2),
        {"prompt_logprobs": 0},
        lambda _, given: _lists_the_odd(given, []) and len(given.choices) == 2,
        "0 is the token alone",
    ),
    *of_both(
        "prompt_logprobs",
        (said("abc", "successor", max_tokens=2), written("abc", "successor", max_tokens=2)),
        {"prompt_logprobs": 1},
        lambda _, given: given.choices[0].prompt_logprobs == [[], [("b", 0, 1)], [("c", 0, 1)]],
        "a token that is the likeliest is told once",
    ),
    *of_both(
        "prompt_logprobs",
        both(ODD, prompt_logprobs=0),
        {"logit_bias": {Q: 100}, "temperature": 2, "prompt_logprobs": 1},
        lambda _, given: _lists_the_odd(given, ["b", "R"]),
        "are the model's own",
    ),
    Effect(
        "text",
        "prompt_logprobs",
        BOTH_ODD,
        {"prompt_logprobs": 0},
        lambda _, given: (
            [
                [[text for text, _, _ in items] for items in choice.prompt_logprobs]
                for choice in given.choices
            ]
            == [[[], ["Q"], ["b"]]] * 2 + [[[], ["b"], ["c"]]] * 2
        ),
        "of each prompt",
    ),
    Effect(
        "text",
        "echo",
        {**COUNT[1], "logprobs": 0},
        {"echo": True},
        lambda without, given: (
            given.text == "abc" + without.text
            and _echoes(given, "abc")
            and given.choices[0].logprobs[3:] == without.choices[0].logprobs
        ),
        "with logprobs",
    ),
    Effect(
        "text",
        "logprobs",
        {**ODD[1], "echo": True},
        {"logprobs": 1},
        lambda _, given: (
            [(token, tops) for token, _, tops in tokens_of(given)]
            == [("a", []), ("Q", ["b", "Q"]), ("b", ["R", "b"]), ("c", ["c"]), ("d", ["d"])]
        ),
        "with echo: the token itself in any case",
    ),
    Effect(
        "text",
        "max_tokens",
        {**COUNT[1], "echo": True, "logprobs": 0},
        {"max_tokens": 0},
        lambda without, given: (
            (given.text, given.tokens, given.choices[0].finish) == ("abc", 0, "length")
            and _echoes(given, "abc")
            and given.choices[0].logprobs == without.choices[0].logprobs[:3]
        ),
        "0 with echo and logprobs",
    ),
    Effect(
        "text",
        "n",
        {**COUNT[1], "echo": True, "logprobs": 1, "prompt": ["abc", "xyz"]},
        {"n": 2},
        lambda without, given: (
            [choice.logprobs for choice in given.choices]
            == [choice.logprobs for choice in without.choices for _ in range(2)]
        ),
        "each choice of an echo has its prompt's logprobs",
    ),
]
