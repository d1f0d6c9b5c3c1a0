"""From a constraint to what the compiler gets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.api.patterns import PatternError, json_pattern, length_pattern, literal
from ovchat_server.api.structured_output import Constraint, ConstraintKind
from ovchat_server.engine.grammar import Reasoning, after_reasoning, form_of, grammar_text
from ovchat_server.engine.schema_dialect import compilable

REGEX = Constraint(ConstraintKind.REGEX, "a+", "guided_regex")


def form(constraint: Constraint, reasoning: Reasoning | None = None) -> Any:
    tag = json.loads(grammar_text(after_reasoning(form_of(constraint), reasoning)))
    assert tag["type"] == "structural_tag"
    return tag["format"]


def test_properties_keep_their_order() -> None:
    schema: Any = {"type": "object", "properties": {"b": {}, "a": {}, "c": {}}}

    written = form(Constraint(ConstraintKind.JSON_SCHEMA, schema, "guided_json"))

    assert list(written["json_schema"]["properties"]) == ["b", "a", "c"]


def test_without_reasoning_the_grammar_holds_from_the_start() -> None:
    assert form(REGEX) == {"type": "regex", "pattern": "a+"}


def test_a_model_that_may_reason_may_do_so_first() -> None:
    answer, reasoned = form(REGEX, Reasoning("<think>", "</think>", opened=False))["elements"]

    assert answer == {"type": "regex", "pattern": "a+"}
    thought, _, same_answer = reasoned["elements"]
    assert (thought["begin"], thought["end"]) == ("<think>", "</think>")
    assert same_answer == answer


def test_inside_the_reasoning_the_text_is_free_to_its_end() -> None:
    thought, _, answer = form(REGEX, Reasoning("<think>", "</think>", opened=True))["elements"]

    assert (thought["begin"], thought["end"]) == ("", "</think>")
    assert answer == {"type": "regex", "pattern": "a+"}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "integer", "minimum": 5}, {"minimum": 5, "maximum": 10**18 - 1}),
        ({"type": "integer", "exclusiveMaximum": 5}, {"minimum": 1 - 10**18}),
        ({"type": "string", "maxLength": 3}, {"pattern": length_pattern(0, 3)}),
        ({"type": "string", "minLength": 3}, {"pattern": length_pattern(3, None)}),
        ({"type": "string", "pattern": "^a|b$"}, {"pattern": "^(a|b)$"}),
        ({"enum": ["Größe", 'a"b']}, {"type": "string", "pattern": '^(Größe|a\\\\"b)$'}),
        ({"type": "array", "minItems": 2}, {"items": True}),
        (
            {"type": "object", "properties": {"Größe": {}}, "required": ["Größe"]},
            {
                "properties": {'Größ" "e': {}},
                "required": ['Größ" "e'],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_what_the_compiler_gets_wrong_is_said_differently(
    schema: dict[str, Any], written: dict[str, Any]
) -> None:
    result = compilable(schema)

    assert isinstance(result, dict)
    assert {key: result.get(key) for key in written} == written


@pytest.mark.parametrize(
    ("pattern", "inside"),
    [
        ("^[a-z]+$", "[a-z]+"),
        ("a|b", "a|b"),
        (r"\d{3}", r"\d{3}"),
        (r"\s", " "),
        ("[^a]", '[^a"\\\\\\x00-\\x1f]'),
        (r"[\w.-]", r"[\w.-]"),
        (r"a\$", r"a\$"),
        (r"\u00e4", r"\u00e4"),
    ],
)
def test_patterns_match_what_json_strings_hold_as_it_is(pattern: str, inside: str) -> None:
    assert json_pattern(pattern) == f"^({inside})$"


@pytest.mark.parametrize(
    "pattern",
    ['"', r"\\", r"\n", "a\nb", "[ -~]", '["]', r"[\n]", r"\x22", r"[^\S]", r"[\D]", "a^", "[ße]"],
)
def test_patterns_of_what_json_escapes_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        json_pattern(pattern)


@given(st.text(min_size=1))
def test_a_literal_matches_its_text_alone(text: str) -> None:
    assert re.fullmatch(literal(text), text)
    assert not re.fullmatch(literal(text), text + "x")


@given(st.text(max_size=20), st.sampled_from([".*", r"[^a]*", r"\D*", r"\W*", r"\S*", r"\s*"]))
def test_a_rewritten_pattern_allows_no_more_and_only_plain_json(text: str, pattern: str) -> None:
    if re.fullmatch(json_pattern(pattern), text):
        assert re.search(pattern, text)
        assert json.loads(f'"{text}"') == text


def test_objects_of_required_properties_are_spelt_out() -> None:
    schema: Any = {
        "$defs": {"city": {"enum": ["Paris"]}},
        "type": "object",
        "properties": {
            "b": {"$ref": "#/$defs/city"},
            "a": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["a", "b"],
    }

    written = form(Constraint(ConstraintKind.JSON_SCHEMA, schema, "guided_json"))

    opening, city, comma, number, closing = written["elements"]
    assert (opening["pattern"], comma["pattern"]) == (r'\{"b": ', ', "a": ')
    assert closing["pattern"] == r"\}"
    assert city["json_schema"]["enum"] == ["Paris"]
    assert [option["json_schema"]["type"] for option in number["elements"]] == ["integer", "null"]


def test_what_recurs_is_left_to_the_compiler() -> None:
    tree: Any = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
        "required": ["next"],
    }
    schema: Any = {"$defs": {"tree": tree}, "$ref": "#/$defs/tree"}

    written = form(Constraint(ConstraintKind.JSON_SCHEMA, schema, "guided_json"))

    inner = written["elements"][1]["elements"][0]["json_schema"]
    assert inner["$ref"] == "#/$defs/tree"
    assert "tree" in inner["$defs"]


def test_a_schema_that_would_grow_without_end_stays_as_it_is() -> None:
    definitions: Any = {
        f"d{number}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{number + 1}"} for name in "abcd"},
            "required": list("abcd"),
        }
        for number in range(20)
    }
    schema: Any = {"$defs": {**definitions, "d20": {}}, "$ref": "#/$defs/d0"}

    assert form(Constraint(ConstraintKind.JSON_SCHEMA, schema, "f"))["type"] == "json_schema"
