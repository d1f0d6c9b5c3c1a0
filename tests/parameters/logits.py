"""What the parameters do that change logits, and those that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.parameters.case import Effect, Fields, of_both, said, written
from tests.parameters.generation import COUNT, GREET, VARIED, becomes, both

if TYPE_CHECKING:
    from tests.parameters.answers import Answer, Said

# The successor's next token has a logit of 30, all others have 0: what a bias makes of them.
Q = str(ord("Q"))
RIVAL: tuple[Fields, Fields] = (
    said("abQ", "successor", max_tokens=8, logit_bias={Q: 31.25}),
    written("abQ", "successor", max_tokens=8, logit_bias={Q: 31.25}),
)
SECOND: tuple[Fields, Fields] = (
    said("abc", "successor", max_tokens=8, logit_bias={Q: 1}),
    written("abc", "successor", max_tokens=8, logit_bias={Q: 1}),
)
BEFORE: tuple[Fields, Fields] = (
    said("abP", "successor", max_tokens=8, logit_bias={Q: 29}),
    written("abP", "successor", max_tokens=8, logit_bias={Q: 29}),
)


def _unspoken(answer: Answer) -> bool:
    return not answer.choices[0].logprobs


def tokens_of(answer: Answer) -> list[Said]:
    return [token for choice in answer.choices for token in choice.logprobs]


def likely(number: float | None) -> bool:
    return number is not None and -1 < number <= 0


def as_any_other(number: float | None) -> bool:
    """Whether it is that of a token that is none of the successor's: of 0, beside one of 30."""
    return number is not None and -31 < number < -29


def shows_logprobs(without: Answer, given: Answer) -> bool:
    tokens = given.choices[0].logprobs
    return (
        _unspoken(without)
        and "".join(token for token, _, _ in tokens) == given.text
        and all(likely(number) for _, number, _ in tokens)
    )


LOGITS: list[Effect] = [
    *of_both(
        "presence_penalty",
        RIVAL,
        {"presence_penalty": 1.5},
        becomes("QQQQQQQQ", "QRSTUVWX"),
        "counts the answer, not the prompt",
    ),
    *of_both(
        "presence_penalty",
        RIVAL,
        {"presence_penalty": 0.5},
        becomes("QQQQQQQQ", "QQQQQQQQ"),
        "counts once",
    ),
    *of_both(
        "presence_penalty",
        BEFORE,
        {"presence_penalty": -2},
        becomes("QRSTUVWX", "QQQQQQQQ"),
        "below 0 favours what was said",
    ),
    *of_both(
        "frequency_penalty",
        RIVAL,
        {"frequency_penalty": 0.5},
        becomes("QQQQQQQQ", "QQQRSTUV"),
        "counts every time",
    ),
    *of_both(
        "frequency_penalty",
        both(RIVAL, presence_penalty=0.5),
        {"frequency_penalty": 0.5},
        becomes("QQQQQQQQ", "QQRSTUVW"),
        "adds up with the other",
    ),
    *of_both("logit_bias", COUNT, {"logit_bias": {Q: 100}}, becomes("defghijk", "QQQQQQQQ")),
    *of_both(
        "logit_bias",
        SECOND,
        {"logit_bias": {Q: 1, str(ord("e")): -100}},
        becomes("defghijk", "dQRSTUVW"),
        "below 0",
    ),
    *of_both(
        "allowed_token_ids",
        COUNT,
        {"allowed_token_ids": [ord("Q")]},
        becomes("defghijk", "QQQQQQQQ"),
    ),
    *of_both(
        "allowed_token_ids",
        SECOND,
        {"allowed_token_ids": [*b"deQ"]},
        becomes("defghijk", "deQQQQQQ"),
        "several",
    ),
    *of_both("bad_words", SECOND, {"bad_words": ["f"]}, becomes("defghijk", "deQRSTUV")),
    *of_both(
        "bad_words",
        SECOND,
        {"bad_words": ["xf", "def"]},
        becomes("defghijk", "deQRSTUV"),
        "of several tokens",
    ),
    *of_both(
        "bad_words",
        SECOND,
        {"bad_words": ["ce", "xf", "gf"]},
        becomes("defghijk", "defghijk"),
        "is banned as a whole",
    ),
    *of_both(
        "bad_words",
        GREET,
        {"bad_words": ["Hello"]},
        lambda without, given: without.text.startswith("Hello") and "Hello" not in given.text,
    ),
]

LOGPROBS: list[Effect] = [
    Effect("chat", "logprobs", COUNT[0], {"logprobs": True}, shows_logprobs),
    Effect("text", "logprobs", COUNT[1], {"logprobs": 0}, shows_logprobs),
    Effect(
        "chat",
        "top_logprobs",
        {**COUNT[0], "logprobs": True},
        {"top_logprobs": 1},
        lambda without, given: (
            not any(tops for _, _, tops in without.choices[0].logprobs)
            and all(tops == [token] for token, _, tops in given.choices[0].logprobs)
        ),
    ),
    Effect(
        "text",
        "logprobs",
        {**COUNT[1], "logit_bias": {Q: 100}, "logprobs": 0},
        {"logprobs": 1},
        lambda without, given: (
            all(tops == ["Q"] for _, _, tops in without.choices[0].logprobs)
            and [tops for _, _, tops in given.choices[0].logprobs][:1] == [["d", "Q"]]
        ),
        "0 is the token itself, 1 the likeliest with it",
    ),
    Effect(
        "chat",
        "top_logprobs",
        {**GREET[0], "logprobs": True},
        {"top_logprobs": 3},
        lambda _, given: all(
            len(tops) == 3 and tops[0] == token for token, _, tops in given.choices[0].logprobs
        ),
        "the likeliest first",
    ),
    Effect(
        "chat",
        "top_logprobs",
        {**VARIED[0], "logprobs": True},
        {"top_logprobs": 2},
        lambda _, given: (
            all(len(tops) == 2 for _, _, tops in tokens_of(given))
            and any(token not in tops for token, _, tops in tokens_of(given))
        ),
        "not the token itself where it is unlikely",
    ),
    Effect(
        "text",
        "logprobs",
        {**VARIED[1], "logprobs": 0},
        {"logprobs": 2},
        lambda _, given: (
            # Those of the same text are one key over REST.
            all(len(tops) <= 3 and token in tops for token, _, tops in tokens_of(given))
            and any(len(tops) == 3 for _, _, tops in tokens_of(given))
        ),
        "the token itself in any case",
    ),
    Effect(
        "chat",
        "logprobs",
        {**COUNT[0], "logprobs": True},
        {"logit_bias": {Q: 100}, "top_logprobs": 1},
        lambda without, given: (
            all(likely(number) for _, number, _ in tokens_of(without))
            and all(
                as_any_other(number) and tops != [token] for token, number, tops in tokens_of(given)
            )
        ),
        "are the model's own, before bias",
    ),
    Effect(
        "chat",
        "logprobs",
        said("Hi there!", logprobs=True),
        {"temperature": 0.7, "top_k": 1, "seed": 1},
        lambda without, given: without.choices[0].logprobs == given.choices[0].logprobs,
        "are the model's own, before temperature",
    ),
]

EFFECTS = [*LOGITS, *LOGPROBS]
