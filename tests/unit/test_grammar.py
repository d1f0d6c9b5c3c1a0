"""From a constraint to what the compiler gets."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.structured_output import Constraint, ConstraintKind
from ovchat_server.grammar.formats import Reasoning, after_reasoning, grammar_text
from ovchat_server.grammar.patterns import literal
from tests.grammars import format_of

REGEX = Constraint(ConstraintKind.REGEX, "a+", FieldPath.of("guided_regex"))


def form(constraint: Constraint, reasoning: Reasoning | None = None) -> Any:
    tag = json.loads(grammar_text(after_reasoning(format_of(constraint), reasoning)))
    assert tag["type"] == "structural_tag"
    return tag["format"]


def test_properties_keep_their_order() -> None:
    schema: Any = {
        "type": "object",
        "properties": {"b": {"type": "null"}, "a": {"type": "boolean"}},
        "required": ["a", "b"],
    }

    written = form(Constraint(ConstraintKind.JSON_SCHEMA, schema, FieldPath.of("guided_json")))

    assert written["type"] == "grammar"
    [root] = [line for line in written["grammar"].splitlines() if line.startswith("r0")]
    assert re.fullmatch(r'r0 ::= "{" +"\\"b\\": " r\d ", " "\\"a\\": " r\d "}"', root)


def test_schemas_inside_a_tag_are_written_as_grammars() -> None:
    schema: Any = {"type": "json_schema", "json_schema": {"type": "null"}}
    tag: Any = {"type": "sequence", "elements": [{"type": "const_string", "value": "x"}, schema]}

    written = form(Constraint(ConstraintKind.STRUCTURAL_TAG, tag, FieldPath.of("structural_tag")))

    null = {"type": "grammar", "grammar": 'root ::= r0\nr0 ::= "null"'}
    assert written == {"type": "sequence", "elements": [tag["elements"][0], null]}


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


@given(st.text(min_size=1))
def test_a_literal_matches_its_text_alone(text: str) -> None:
    assert re.fullmatch(literal(text), text)
    assert not re.fullmatch(literal(text), text + "x")
