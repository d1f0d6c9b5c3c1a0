"""Values that stand as text between tags, written so that they are read as their schema has them.

What the text `5` is, a number or a string, only the schema tells a parser. So a string that may be
taken for a value of another type, which does not follow the schema, is not written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import CHARACTERS, Alphabet, character_class, literal, until
from ovchat_server.grammar.json_text import json_text
from ovchat_server.grammar.notation import UnwritableError, excluding, verbatim
from ovchat_server.grammar.schema.code_points import characters, common
from ovchat_server.grammar.schema.nodes import Chars, Repeat, first_characters
from ovchat_server.grammar.schema.shapes import (
    EVERY,
    Array,
    Number,
    Object,
    Shape,
    String,
    Values,
    equal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.rules import Alternative, Rule
    from ovchat_server.grammar.values import ValueWriter

STRING = "string"
# What a value of a type begins with, as JSON or Python.
BEGINNINGS = {
    "null": "nN",
    "boolean": "tfTF",
    "integer": "-0123456789",
    "number": "-0123456789",
    "array": "[",
    "object": "{",
}
# What parsers skip before a value, and what begins a tag or a character's name.
SKIPPED = "".join(chr(code) for code in range(0x3001) if chr(code).isspace()) + "<&"
# Formats of which some strings are values of other types, too.
AMBIGUOUS = frozenset({"hostname", "relative-json-pointer", "uri-reference", "uri-template"})


@dataclass(frozen=True, slots=True)
class TextNotation:
    """How a family writes values as text, and reads them.

    Attributes:
        rules: EBNF: `text` is any text, with what ends it; and what it needs.
        end: Stands behind a value.
        words: EBNF of true, false and null.
        constant: Writes a known text; raises UnwritableError where it cannot.
        alphabet: What texts of a pattern or length consist of.
        types: Returns what the parser may take a property of a schema for, by JSON Schema's names
            of types; none: for anything. A property without a name is one that is not declared.
        read: Returns the JSON of what the parser reads, from a text and these types.
    """

    rules: tuple[str, ...]
    end: str
    words: Mapping[str, str]
    constant: Callable[[str], str]
    alphabet: Alphabet
    types: Callable[[JsonObject, str | None], frozenset[str]]
    read: Callable[[str, frozenset[str]], str]


def tagged(
    tag: str,
    end: str,
    words: Mapping[str, str],
    types: Callable[[JsonObject, str | None], frozenset[str]],
    read: Callable[[str, frozenset[str]], str],
) -> TextNotation:
    """Return text as it is, up to a closing tag.

    Args:
        tag: The tag.
        end: What stands behind a value, the tag and the white space around it.
        words: As TextNotation's, and so are `types` and `read`.
        types: See there.
        read: See there.
    """

    def constant(text: str) -> str:
        if tag in text:
            raise UnwritableError(f"a text with {tag} in it")
        return text

    rules = (f"text ::= until {literal(end.partition(tag)[2])}", f"until ::= {until(tag)}")
    alphabet = Alphabet(CHARACTERS, verbatim, ("<", "/"))
    return TextNotation(rules, end, words, constant, alphabet, types, read)


class TextWriter:
    """Writes such values, with the rest of a grammar."""

    def __init__(self, values: ValueWriter, notation: TextNotation, schema: JsonValue) -> None:
        """Write the arguments of a tool, whose `schema` the parser reads them by."""
        self._values = values
        self._notation = notation
        self._schema = schema if isinstance(schema, dict) else {}
        self._end = literal(notation.end)

    def rule(self, schema: JsonValue, place: str, name: str | None) -> Rule:
        """Return the rule of the values of the argument `name`, with their end."""
        types = self._notation.types(self._schema, name)
        key = f"text {sorted(types)} {json_text(schema)}"
        return self._values.rules.of_schema(
            key, schema, place, lambda new: self._texts(new, types, place)
        )

    def _texts(self, schema: JsonValue, types: frozenset[str], place: str) -> list[Alternative]:
        shapes = self._values.reader.shapes(schema)
        read = types or frozenset({*BEGINNINGS, STRING})
        free = {kind for shape in shapes for kind in _free(shape)}
        # A text may be read as one of these, and not follow the schema then.
        held = (read & BEGINNINGS.keys()) - free
        if shapes == EVERY or (String() in shapes and not held):
            return [("text",)]
        found: list[Alternative] = []
        for shape in shapes:
            match shape:
                case Values(values):
                    texts = [self._constant(value, types) for value in values]
                    found += [(text, self._end) for text in texts if text]
                case String():
                    found += self._strings(shape, held)
                case _ if read & _kinds(shape):
                    options = self._values.written(shape, place)
                    found += [(*option, self._end) for option in options]
        return found

    def _constant(self, value: JsonValue, types: frozenset[str]) -> str:
        match value:
            case None | bool():
                text, written = json_text(value), self._notation.words[json_text(value)]
            case str():
                text, written = value, self._values.possible(self._notation.constant, value)
                written = literal(written) if written or not value else ""
            case _:
                text, written = json_text(value), self._values.constant(value)
        if equal(json.loads(self._notation.read(text, types)), value):
            return written
        return self._values.impossible(f"{json_text(value)} where it is read as something else")

    def _strings(self, shape: String, held: frozenset[str]) -> list[Alternative]:
        """Return the alternatives of strings that do not read as a value of the `held` types."""
        taken = "".join(BEGINNINGS[kind] for kind in sorted(held)) + SKIPPED
        begin = excluding(taken)
        if shape == String():
            return [(character_class(begin), "text"), (self._end,)]
        node = self._values.strings.node(shape)
        safe = bool(shape.formats) and not AMBIGUOUS.intersection(shape.formats)
        if not held or safe or not common(first_characters(node), characters(taken)):
            return [(self._notation.alphabet.content(node), self._end)]
        if shape.patterns or shape.formats:
            self._values.impossible("strings that may be read as something else")
            return []
        if shape.longest == 0:
            return [(self._end,)]
        most = None if shape.longest is None else shape.longest - 1
        rest = Repeat(Chars(CHARACTERS), max(0, shape.shortest - 1), most)
        text = f"{character_class(begin)} {self._notation.alphabet.content(rest)}"
        return [(text, self._end), *([] if shape.shortest else [(self._end,)])]


def _kinds(shape: Shape) -> frozenset[str]:
    """Return the types as which a parser reads every value of a shape without constants."""
    match shape:
        case Number():
            return frozenset({"number", "integer"} if shape.whole else {"number"})
        case Array():
            return frozenset({"array"})
        case Object():
            return frozenset({"object"})
    return frozenset({STRING})


def _free(shape: Shape) -> frozenset[str]:
    """Return the types all values of which have the shape."""
    match shape:
        case Values(values):
            kinds = {"null"} if None in values else set()
            if any(value is True for value in values) and any(value is False for value in values):
                kinds.add("boolean")
            return frozenset(kinds)
        case Number() if shape == Number():
            return frozenset({"number", "integer"})
        case Number(whole=True) if shape == Number(whole=True):
            return frozenset({"integer"})
        case Array() | Object() | String() if shape in (Array(), Object(), String()):
            return _kinds(shape)
    return frozenset()
