"""What of a schema cannot be enforced is left out where it stands, and the rest is enforced."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.grammar.cache import GrammarCache
from ovchat_server.grammar.relaxation import Relaxation
from ovchat_server.grammar.schema.errors import SchemaError, TooLargeError
from ovchat_server.grammar.values import json_grammar
from tests.grammars import as_regex, unenforced
from tests.unit.dialects.test_argument_forms import FAMILIES
from tests.unit.dialects.test_tool_dialects import DIALECTS
from tests.unit.relaxed_schemas import ANYTHING, CASES, DEFINITIONS, LOOKS, WORD

if TYPE_CHECKING:
    from ovchat_server.chat.dialects.call_format import CallFormat
    from ovchat_server.grammar.relaxation import Write


BAD = {"not": {"type": "null"}}
# Combined with itself, too many.
WIDE = {"anyOf": [{"type": "string", "minLength": number} for number in range(800)]}


def form(name: str) -> CallFormat:
    calls = DIALECTS[name].format
    assert calls is not None
    return calls


WRITERS: dict[str, Write] = {"json": json_grammar} | {
    name: form(name).arguments for name in FAMILIES
}
every_notation = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def relaxed(write: Write, schema: Any) -> tuple[str, list[str]]:
    relaxation = Relaxation(schema)
    return numbered(write(schema, relaxation)), [*relaxation.places.left_out()]


def numbered(grammar: str) -> str:
    """The grammar, with its rules called by their order."""
    names: dict[str, str] = {}
    return re.sub(r"\br\d+\b", lambda found: names.setdefault(found[0], f"r{len(names)}"), grammar)


def tool(schema: Any) -> dict[str, Any]:
    """A tool with a property of a schema, between others."""
    return {
        "type": "object",
        "properties": {"first": WORD, "bad": schema, "last": {"type": "boolean"}},
        "required": ["bad", "last"],
        "additionalProperties": False,
        "$defs": DEFINITIONS,
    }


def pointer(place: str) -> str:
    return place.removeprefix("#") if place.startswith("#") else f"/properties/bad{place}"


@every_notation
@pytest.mark.parametrize("case", CASES)
def test_the_rest_is_enforced_as_if_it_had_never_been_there(write: Write, case: str) -> None:
    bad, places, left = CASES[case]

    assert unenforced(tool(bad), write)
    grammar, left_out = relaxed(write, tool(bad))

    assert left_out == [*map(pointer, places)]
    assert grammar == numbered(write(tool(left)))


@pytest.mark.parametrize(
    ("name", "held", "others"),
    [
        (
            "json",
            ['{"bad": "x", "last": true}', '{"first": "red", "bad": "", "last": false}'],
            [
                '{"bad": "x"}',
                '{"bad": 1, "last": true}',
                '{"first": "x", "bad": "x", "last": true}',
            ],
        ),
        ("pythonic", ['bad="x", last=True'], ['bad="x"', "bad=1, last=True", 'bad="x", last=1']),
        (
            "qwen3_coder",
            ["<parameter=bad>\nx\n</parameter>\n<parameter=last>\ntrue\n</parameter>\n"],
            ["<parameter=bad>\nx\n</parameter>\n"],
        ),
    ],
)
def test_names_types_and_what_is_required_hold(
    name: str, held: list[str], others: list[str]
) -> None:
    grammar, _ = relaxed(WRITERS[name], tool({"type": "string", "pattern": LOOKS, "maxLength": 3}))
    regex = as_regex(grammar)
    assert [text for text in [*held, *others] if regex.fullmatch(text)] == held


def test_what_could_be_enforced_is_no_other_grammar_when_it_may_be_relaxed() -> None:
    schema = tool({"type": "string", "pattern": "^a+$"})
    for write in WRITERS.values():
        assert relaxed(write, schema) == (numbered(write(schema)), [])


@pytest.mark.parametrize(
    ("schema", "places", "left"),
    [
        ({"type": "object", "required": ["a"], "if": {}}, ["/if"], {"required": ["a"]}),
        ({"type": "object", "enum": [1]}, ["/enum"], {}),
        ({"type": "object", "anyOf": [{"type": "integer"}]}, ["/anyOf/0/type"], {}),
        (
            {"type": "object", "properties": {"a": False, "b": {}}, "required": ["a", "b"]},
            ["/required/0"],
            {"properties": {"a": False, "b": {}}, "required": ["b"]},
        ),
    ],
)
def test_a_whole_schema_stays_one_of_objects(schema: Any, places: list[str], left: Any) -> None:
    expected = numbered(json_grammar({"type": "object", **left}))
    assert relaxed(json_grammar, schema) == (expected, places)


@every_notation
def test_a_type_that_nobody_knows_is_left_out(write: Write) -> None:
    schema = tool({"type": "strin", "pattern": "^a", "minLength": 2})
    assert relaxed(write, schema)[1] == ["/properties/bad/type"]


@every_notation
def test_what_is_the_same_is_left_out_at_every_place(write: Write) -> None:
    inner = {"type": "object", "properties": {"x": BAD, "y": {**BAD, "description": "Why."}}}
    schema = tool({"type": "object", "properties": {"a": inner, "b": inner}, "title": "T"})
    schema["properties"]["tree"] = {"type": "array", "items": {"$ref": "#/properties/tree"}} | BAD
    # As callers send it: nothing stands there twice.
    left_out = relaxed(write, json.loads(json.dumps(schema)))[1]

    within = [f"/properties/bad/properties/{one}" for one in "ab"]
    expected = [f"{place}/properties/{one}/not" for place in within for one in "xy"]
    assert sorted(left_out) == sorted([*expected, "/properties/tree/not"])


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        (
            {"oneOf": [{"minimum": 2}, {"type": "integer"}, {"type": "string", "pattern": LOOKS}]},
            ["oneOf/2/pattern", "oneOf"],
        ),
        ({"oneOf": [{"type": "string", **BAD}, {"type": "integer"}]}, ["oneOf/0/not"]),
        ({"oneOf": [{"type": "string", **BAD}], "type": "integer"}, ["oneOf/0/not", ""]),
    ],
)
def test_all_that_is_left_out_stands_in_the_schema(schema: Any, places: list[str]) -> None:
    left_out = relaxed(json_grammar, tool(schema))[1]
    assert left_out == [f"/properties/bad/{place}".removesuffix("/") for place in places]


def test_an_optional_property_that_nothing_follows_is_no_fault() -> None:
    schema = {
        "type": "object",
        "properties": {"a": False, "b": {"type": "integer", "not": {"type": "null"}}},
    }
    assert relaxed(json_grammar, schema)[1] == ["/properties/b/not"]


def test_what_only_a_notation_cannot_write_is_left_out_in_it() -> None:
    schema = tool({"const": "</parameter>"}) | {"required": ["first", "a<b", "bad"]}
    schema["properties"]["a<b"] = WORD

    assert relaxed(json_grammar, schema)[1] == []
    left_out = relaxed(form("qwen3_coder").arguments, schema)[1]
    assert sorted(left_out) == ["/properties/bad/const", "/required/1"]


@every_notation
def test_what_would_never_end_needs_less(write: Write) -> None:
    tree = {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}}, "required": ["a"]}
    schema = {**tree, "properties": {**tree["properties"], "b": WORD}, "$defs": {"tree": tree}}

    assert unenforced(schema, write)
    grammar, left_out = relaxed(write, schema)

    assert left_out == ["/$defs/tree/required/0"]
    assert "red" in grammar


def test_what_is_too_large_is_not_relaxed() -> None:
    with pytest.raises(TooLargeError, match="combines too many schemas"):
        relaxed(json_grammar, {"allOf": [WIDE, WIDE], "not": {"type": "null"}})


@every_notation
def test_a_property_that_is_too_large_is_of_anything(write: Write) -> None:
    schema = tool({"allOf": [WIDE, WIDE]})
    grammar, left_out = relaxed(write, schema)

    assert left_out == ["/properties/bad"]
    assert grammar == numbered(write(tool(ANYTHING)))
    for number in range(4):
        schema["properties"][f"n{number}"] = {"allOf": [WIDE, WIDE, {"maxLength": number}]}
    with pytest.raises(TooLargeError, match="combines too many schemas"):
        relaxed(write, schema)


def test_many_faults_are_left_out_one_by_one() -> None:
    bad = {"type": "string", "pattern": LOOKS, "minLength": 1}
    schema = {"type": "object", "properties": {f"n{number}": {**bad} for number in range(500)}}
    # One rule of the grammar, but each of them is told of.
    assert len(relaxed(json_grammar, schema)[1]) == 500
    for number, name in enumerate(schema["properties"]):
        schema["properties"][name] = {**bad, "maxLength": number + 1}
    assert len(relaxed(json_grammar, schema)[1]) == 500


def test_references_in_each_others_places_are_left_out_somewhere() -> None:
    chain: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5000)}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}, "b": WORD}}
    grammar, [left_out] = relaxed(json_grammar, schema | {"$defs": chain})
    assert left_out.endswith("/$ref")
    assert "red" in grammar


def test_relaxed_grammars_are_kept_beside_the_others() -> None:
    cache = GrammarCache()
    schema = tool({"not": {"type": "null"}})
    found = cache.relaxed(json_grammar, schema)

    assert found.left_out == ("/properties/bad/not",)
    assert cache.relaxed(json_grammar, schema) is found
    with pytest.raises(SchemaError, match="uses not at /properties/bad"):
        cache.grammar(json_grammar, schema)
    assert cache.relaxed(json_grammar, WORD).grammar == cache.grammar(json_grammar, WORD)
