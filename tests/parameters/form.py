"""What the parameters do that ask for a form of the answer, and the values they take."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema

from tests.parameters.case import Bound, Effect, Fields, of_both, said, turn, written
from tests.parameters.generation import COUNT, GREET
from tests.structured_output import QUESTION, SCHEMA, TAG, assert_valid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.parameters.answers import Answer

# Without reasoning: the form holds from the first token.
ASKED: tuple[Fields, Fields] = (
    said(QUESTION, max_tokens=200, chat_template_kwargs={"enable_thinking": False}),
    written(turn(QUESTION), max_tokens=200),
)
# Nothing that asks for JSON.
GREETED: tuple[Fields, Fields] = (
    {**GREET[0], "chat_template_kwargs": {"enable_thinking": False}},
    GREET[1],
)
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
# As llama.cpp and Together take schemas.
BESIDE_TYPE = {"type": "json_schema", "schema": SCHEMA}
OBJECT_OF_SCHEMA = {"type": "json_object", "schema": SCHEMA}
GRAMMAR = 'root ::= "x" | "yy"'
UNENFORCED = {"type": "array", "uniqueItems": True}


def matches(pattern: str) -> Callable[[Answer, Answer], bool]:
    """Only the answer with the parameter has the form, and ends where the form does."""
    return lambda without, given: (
        not re.fullmatch(pattern, without.text)
        and re.fullmatch(pattern, given.text) is not None
        and given.choices[0].finish == "stop"
    )


def _valid(answer: Answer) -> bool:
    try:
        assert_valid(answer.text, SCHEMA)
    except (ValueError, jsonschema.ValidationError):
        return False
    return answer.choices[0].finish == "stop"


def becomes_valid(without: Answer, given: Answer) -> bool:
    return not _valid(without) and _valid(given)


def becomes_an_object(without: Answer, given: Answer) -> bool:
    return not without.text.startswith("{") and given.text.startswith("{")


EFFECTS: list[Effect] = [
    *of_both(
        "response_format", ASKED, {"response_format": JSON_SCHEMA}, becomes_valid, "json_schema"
    ),
    *of_both(
        "response_format",
        ASKED,
        {"response_format": BESIDE_TYPE},
        becomes_valid,
        "json_schema beside the type",
    ),
    *of_both(
        "response_format",
        ASKED,
        {"response_format": OBJECT_OF_SCHEMA},
        becomes_valid,
        "json_object with a schema",
    ),
    *of_both(
        "response_format",
        GREETED,
        {"response_format": {"type": "json_object"}},
        becomes_an_object,
        "json_object",
    ),
    *of_both(
        "response_format",
        COUNT,
        {"response_format": {"type": "text"}},
        lambda without, given: without.texts == given.texts,
        "text is any",
    ),
    *of_both(
        "response_format", COUNT, {"response_format": TAG}, matches("[ab]{3}"), "structural_tag"
    ),
    *of_both(
        "response_format",
        COUNT,
        {"response_format": TAG["format"]},
        matches("[ab]{3}"),
        "a format of OVMS by itself",
    ),
    *of_both(
        "structured_outputs", ASKED, {"structured_outputs": {"json": SCHEMA}}, becomes_valid, "json"
    ),
    *of_both(
        "structured_outputs",
        GREETED,
        {"structured_outputs": {"json_object": True}},
        becomes_an_object,
        "json_object",
    ),
    *(
        effect
        for name, value, pattern in (
            ("regex", "[0-9]{2}-[a-z]{2}", "[0-9]{2}-[a-z]{2}"),
            ("choice", ["yes", "no"], "yes|no"),
            ("grammar", GRAMMAR, "x|yy"),
            ("structural_tag", TAG, "[ab]{3}"),
        )
        for effect in of_both(
            "structured_outputs",
            COUNT,
            {"structured_outputs": {name: value}},
            matches(pattern),
            name,
        )
    ),
    *of_both("guided_json", ASKED, {"guided_json": SCHEMA}, becomes_valid),
    *of_both("guided_json", ASKED, {"guided_json": json.dumps(SCHEMA)}, becomes_valid, "as text"),
    *of_both("guided_regex", COUNT, {"guided_regex": "[0-9]{2}"}, matches("[0-9]{2}")),
    *of_both("guided_choice", COUNT, {"guided_choice": ["yes", "no"]}, matches("yes|no")),
    *of_both("guided_grammar", COUNT, {"guided_grammar": GRAMMAR}, matches("x|yy")),
    *of_both("structural_tag", COUNT, {"structural_tag": TAG}, matches("[ab]{3}")),
    *of_both(
        "structural_tag", COUNT, {"structural_tag": json.dumps(TAG)}, matches("[ab]{3}"), "as text"
    ),
]


def _bounds(
    name: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], **others: Any
) -> list[Bound]:
    chat, text = COUNT
    return [
        Bound("chat", name, accepted, refused, {**chat, **others}),
        Bound("text", name, accepted, refused, {**text, **others}),
    ]


BOUNDS: list[Bound] = [
    *_bounds(
        "response_format",
        (
            {"type": "text"},
            {"type": "json_object"},
            OBJECT_OF_SCHEMA,
            JSON_SCHEMA,
            BESIDE_TYPE,
            TAG,
            TAG["format"],
        ),
        (
            {},
            {"type": "x"},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": {"name": "x"}},
            {"type": "json_schema", "json_schema": {"name": "x", "schema": UNENFORCED}},
            {"type": "json_object", "schema": UNENFORCED},
            {"type": "json_schema", "schema": UNENFORCED},
            {"type": "structural_tag"},
            {"type": "regex", "pattern": "[a"},
        ),
    ),
    *_bounds(
        "structured_outputs",
        ({"regex": "a"}, {"choice": ["a"] * 1000}, {"json": SCHEMA}, {"json_object": True}),
        (
            {},
            {"regex": ""},
            {"regex": "[a"},
            {"choice": []},
            {"choice": ["a"] * 1001},
            {"json": UNENFORCED},
            {"json_object": False},
            {"structural_tag": {}},
            {"disable_any_whitespace": False},
            {"regex": "a", "choice": ["a"]},
        ),
    ),
    *_bounds("guided_json", (SCHEMA, json.dumps(SCHEMA)), (UNENFORCED, "{")),
    *_bounds("guided_regex", ("a", "a" * 1000), ("", "[a", "(" * 101 + "a" + ")" * 101)),
    *_bounds("guided_choice", (["a"], ["a"] * 1000), ([], ["a"] * 1001, [""])),
    *_bounds("guided_grammar", (GRAMMAR,), ("", "root ::=", 'other ::= "x"')),
    *_bounds("structural_tag", (TAG, json.dumps(TAG)), ({}, {"type": "structural_tag"}, "{")),
]

REGEX = {"regex": "[a-z]{2}"}
TOGETHER: list[Bound] = [
    *_bounds("ignore_eos", (False,), (True,), structured_outputs=REGEX),
    *_bounds("min_tokens", (0,), (1,), structured_outputs=REGEX),
    *_bounds("best_of", (1,), (2,), structured_outputs=REGEX),
    *_bounds("use_beam_search", (False,), (True,), structured_outputs=REGEX, n=2),
    # One form at most, whatever it is called; the last one is named.
    *_bounds("structured_outputs", (REGEX,), (), response_format={"type": "text"}),
    *_bounds("structured_outputs", (), (REGEX,), response_format={"type": "json_object"}),
    *_bounds("guided_regex", (), ("a",), response_format={"type": "json_object"}),
    *_bounds("guided_choice", (), (["a"],), structured_outputs=REGEX),
    # By its old and its new name it is one.
    *_bounds("guided_json", (SCHEMA,), (), structured_outputs={"json": SCHEMA}),
    *_bounds("guided_regex", (REGEX["regex"],), ("[a-z]",), structured_outputs=REGEX),
    *_bounds("guided_grammar", (), (GRAMMAR,), guided_json=SCHEMA),
    *_bounds("structural_tag", (), (TAG,), guided_regex="a"),
]

# Of parameters that are objects, what is inside, too.
WRONG_TYPES: dict[str, tuple[Any, ...]] = {
    "response_format": (
        1,
        True,
        [],
        "x",
        {"type": "json_object", "schema": 1},
        {"type": "json_schema", "schema": 1},
        {"type": "json_schema", "json_schema": 1},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": 1}},
    ),
    "structured_outputs": (
        1,
        True,
        [],
        "x",
        {"json": 1},
        {"json": "[]"},
        {"regex": 1},
        {"choice": "x"},
        {"choice": [1]},
        {"json_object": "yes"},
    ),
    "guided_json": (1, True, [], "1", "[]"),
    "guided_regex": (1, True, [], {}),
    "guided_choice": (1, True, "x", [1], {}),
    "guided_grammar": (1, True, [], {}),
    "structural_tag": (1, True, [], "1", "[]"),
}
