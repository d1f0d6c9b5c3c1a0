"""What form an answer must have, as both doors' fields say it."""

from __future__ import annotations

from typing import Any

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.grammar_limits import (
    MAX_CHARACTERS,
    MAX_CHOICES,
    MAX_DEPTH,
    MAX_ENUM_VALUES,
)
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.domain.text_request import read_text_request

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a"]}
TAG = {"type": "structural_tag", "format": {"type": "const_string", "value": "hi"}}
MESSAGES: list[Any] = [{"role": "user", "content": "Hello"}]


def read(**fields: Any) -> Constraint | None:
    return read_chat_request(
        {"model": "demo", "messages": MESSAGES, **fields}
    ).generation.constraint


def faults(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidRequestError) as caught:
        read(**fields)
    return [(violation.field, violation.message) for violation in caught.value.violations]


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("fields", "kind", "value", "field"),
    [
        (
            {"response_format": {"type": "json_object"}},
            ConstraintKind.JSON_OBJECT,
            None,
            "response_format",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "strict": True, "schema": SCHEMA},
                }
            },
            ConstraintKind.JSON_SCHEMA,
            SCHEMA,
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
            ConstraintKind.JSON_SCHEMA,
            SCHEMA,
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": SCHEMA}},
            ConstraintKind.JSON_SCHEMA,
            SCHEMA,
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": {"minProperties": 1}}},
            ConstraintKind.JSON_SCHEMA,
            {"type": "object", "minProperties": 1},
            "response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": None}},
            ConstraintKind.JSON_OBJECT,
            None,
            "response_format",
        ),
        (
            {"response_format": TAG},
            ConstraintKind.STRUCTURAL_TAG,
            TAG["format"],
            "response_format",
        ),
        (
            {"response_format": TAG["format"]},
            ConstraintKind.STRUCTURAL_TAG,
            TAG["format"],
            "response_format",
        ),
        (
            {"structured_outputs": {"json": SCHEMA}},
            ConstraintKind.JSON_SCHEMA,
            SCHEMA,
            "structured_outputs.json",
        ),
        (
            {"structured_outputs": {"json_object": True}},
            ConstraintKind.JSON_OBJECT,
            None,
            "structured_outputs.json_object",
        ),
        (
            {"structured_outputs": {"regex": "a+"}},
            ConstraintKind.REGEX,
            "a+",
            "structured_outputs.regex",
        ),
        (
            {"structured_outputs": {"choice": ["a", "b"]}},
            ConstraintKind.CHOICE,
            ["a", "b"],
            "structured_outputs.choice",
        ),
        (
            {"structured_outputs": {"grammar": 'root ::= "a"'}},
            ConstraintKind.GRAMMAR,
            'root ::= "a"',
            "structured_outputs.grammar",
        ),
        (
            {"structured_outputs": {"structural_tag": TAG}},
            ConstraintKind.STRUCTURAL_TAG,
            TAG["format"],
            "structured_outputs.structural_tag",
        ),
        ({"guided_json": SCHEMA}, ConstraintKind.JSON_SCHEMA, SCHEMA, "guided_json"),
        ({"guided_regex": "a"}, ConstraintKind.REGEX, "a", "guided_regex"),
        ({"guided_choice": ["a"]}, ConstraintKind.CHOICE, ["a"], "guided_choice"),
        (
            {"guided_grammar": "root ::= []"},
            ConstraintKind.GRAMMAR,
            "root ::= []",
            "guided_grammar",
        ),
        ({"structural_tag": TAG}, ConstraintKind.STRUCTURAL_TAG, TAG["format"], "structural_tag"),
    ],
)
def test_every_way_to_ask_for_a_form_is_read(
    fields: dict[str, Any], kind: ConstraintKind, value: Any, field: str
) -> None:
    constraint = read(**fields)
    assert constraint is not None
    assert (constraint.kind, constraint.value) == (kind, value)
    assert str(constraint.field) == field


@pytest.mark.parametrize(
    "fields", [{}, {"response_format": {"type": "text"}}, {"response_format": None}]
)
def test_free_text_is_no_constraint(fields: dict[str, Any]) -> None:
    assert read(**fields) is None


def test_text_completions_take_the_same() -> None:
    request = read_text_request({"model": "demo", "prompt": "a", "guided_regex": "b"})

    assert request.generation.constraint == Constraint(
        ConstraintKind.REGEX, "b", FieldPath.of("guided_regex")
    )


def test_the_older_structural_tags_mean_the_same_in_the_newer_form() -> None:
    constraint = read(
        structural_tag={
            "type": "structural_tag",
            "structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}],
            "triggers": ["<f"],
        }
    )

    assert constraint is not None
    assert constraint.value == {
        "type": "triggered_tags",
        "triggers": ["<f"],
        "tags": [
            {
                "type": "tag",
                "begin": "<f>",
                "content": {"type": "json_schema", "json_schema": SCHEMA},
                "end": "</f>",
            }
        ],
    }


@pytest.mark.parametrize(
    ("fields", "field", "part"),
    [
        ({"response_format": {}}, "response_format.type", "is required"),
        ({"response_format": "json"}, "response_format", "must be an object"),
        ({"response_format": {"type": "yaml"}}, "response_format.type", "must be one of 'text'"),
        (
            {"response_format": {"type": "json_schema"}},
            "response_format.json_schema",
            "is required",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
            "is required",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": SCHEMA},
                    "schema": {"type": "null"},
                }
            },
            "response_format.json_schema.schema",
            "cannot be combined with another constraint on the answer: got response_format.schema",
        ),
        (
            {"response_format": {"type": "json_object", "schema": nested(MAX_DEPTH)}},
            "response_format.schema",
            f"more than {MAX_DEPTH} levels",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": "{}"}}},
            "response_format.json_schema.schema",
            "must be an object",
        ),
        ({"response_format": {"type": "structural_tag"}}, "response_format", "must have a format"),
        ({"structural_tag": {"type": "tag"}}, "structural_tag", "must be a structural tag"),
        (
            {"structural_tag": {**TAG, "triggers": []}},
            "structural_tag.triggers",
            "send only one of them",
        ),
        (
            {"response_format": {"type": "sequence", "elements": [{"pattern": "a"}]}},
            "response_format.elements[0].type",
            "is required",
        ),
        ({"structured_outputs": {}}, "structured_outputs.json", "is required, got none"),
        ({"structured_outputs": {"foo": 1}}, "structured_outputs.json", "is required, got foo"),
        (
            {"structured_outputs": {"json_object": False}},
            "structured_outputs.json_object",
            "must be true",
        ),
        (
            {"structured_outputs": {"regex": "a", "whitespace_pattern": " "}},
            "structured_outputs.whitespace_pattern",
            "is not supported",
        ),
        ({"guided_regex": ""}, "guided_regex", "must not be empty"),
        ({"guided_regex": "a\0b"}, "guided_regex", "NUL"),
        ({"guided_regex": 3}, "guided_regex", "must be a string"),
        ({"guided_regex": "a" * (MAX_CHARACTERS + 1)}, "guided_regex", "must have at most"),
        ({"guided_regex": "(" * 20_000}, "guided_regex", "nest parentheses"),
        ({"guided_grammar": "root ::= " + "(" * 20_000}, "guided_grammar", "nest parentheses"),
        ({"guided_grammar": 'root ::= "Größe"'}, "guided_grammar", "a letter such as ß"),
        ({"guided_choice": []}, "guided_choice", f"1 to {MAX_CHOICES} strings"),
        ({"guided_choice": ["a"] * (MAX_CHOICES + 1)}, "guided_choice", "got 1001"),
        ({"guided_choice": ["a", ""]}, "guided_choice[1]", "must not be empty"),
        ({"guided_choice": ["a", 1]}, "guided_choice[1]", "must be a string"),
        ({"guided_json": nested(MAX_DEPTH)}, "guided_json", f"more than {MAX_DEPTH} levels"),
        (
            {"guided_json": {"enum": list(range(MAX_ENUM_VALUES + 1))}},
            "guided_json",
            "holds enums of more than",
        ),
        (
            {"guided_json": {"description": "a" * (MAX_CHARACTERS + 1)}},
            "guided_json",
            f"more than {MAX_CHARACTERS} characters",
        ),
        ({"guided_regex": "a", "ignore_eos": True, "max_tokens": 5}, "ignore_eos", "guided_regex"),
        ({"guided_regex": "a", "min_tokens": 2, "max_tokens": 5}, "min_tokens", "guided_regex"),
        ({"guided_regex": "a", "best_of": 2}, "best_of", "guided_regex"),
        ({"guided_regex": "a", "n": 2, "use_beam_search": True}, "use_beam_search", "guided_regex"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    fields: dict[str, Any], field: str, part: str
) -> None:
    [(path, message)] = faults(**fields)

    assert path == field
    assert message.startswith(field)
    assert part in message


def test_a_second_constraint_is_refused_naming_both() -> None:
    [(_, message)] = faults(guided_regex="a", structured_outputs={"choice": ["b"]})

    assert "structured_outputs.choice and guided_regex" in message


def test_the_same_constraint_by_several_names_is_one() -> None:
    constraint = read(structured_outputs={"json": SCHEMA}, guided_json=SCHEMA)

    assert constraint is not None
    assert str(constraint.field) == "structured_outputs.json"


@pytest.mark.parametrize(
    "other", [{"type": "integer", "enum": [True]}, {"enum": [1], "type": "integer"}]
)
def test_almost_the_same_constraint_is_another(other: dict[str, Any]) -> None:
    same = {"type": "integer", "enum": [1]}
    [(_, message)] = faults(structured_outputs={"json": same}, guided_json=other)

    assert "structured_outputs.json and guided_json" in message


def test_everything_wrong_is_told_at_once() -> None:
    assert len(faults(guided_regex="", guided_choice=[], temperature=9)) == 3
