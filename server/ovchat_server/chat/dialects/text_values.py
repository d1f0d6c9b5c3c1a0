"""Values that are written as text without types, so that they are read as their schema has them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.chat.dialects.ebnf import any_of, characters, literal, until
from ovchat_server.chat.dialects.json_patterns import PatternError
from ovchat_server.chat.dialects.notation import UnwritableError
from ovchat_server.chat.dialects.plain_schemas import ARRAY, NUMBER, OBJECT
from ovchat_server.chat.dialects.plain_schemas import STRING as STRINGS
from ovchat_server.chat.dialects.schema_leaves import leaves
from ovchat_server.chat.dialects.string_formats import NEVER_JSON
from ovchat_server.chat.dialects.string_patterns import pattern
from ovchat_server.chat.dialects.value_grammar import string_pattern
from ovchat_server.chat.dialects.values import STRING, typed, types_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.chat.dialects.value_grammar import ValueGrammar

# What a value of a type begins with, as JSON or Python.
BEGINNINGS = {
    "null": "nN",
    "boolean": "tfTF",
    "integer": "-0123456789",
    "number": "-0123456789",
    "array": "[",
    "object": "{",
}
BOUNDS = {
    "integer": NUMBER,
    "number": NUMBER,
    STRING: STRINGS | {"format"},
    "array": ARRAY,
    "object": OBJECT,
}
# What is not looked at before a value.
SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True, slots=True)
class TextValues:
    """How a family writes values as text.

    Attributes:
        rules: `text` is any text, with what ends it.
        end: What stands behind a value.
        words: true, false and null.
        written: A constant text, as it is written.
        barred: Without these characters no text of a pattern holds what ends it; each by itself.
        instead: What is written for those.
    """

    rules: Mapping[str, str]
    end: str
    words: Mapping[str, str]
    written: Callable[[str], str]
    barred: tuple[str, ...]
    instead: Mapping[str, str] = field(default_factory=dict)


def tagged(tag: str, end: str, words: Mapping[str, str]) -> TextValues:
    """Text as it is, up to a closing tag.

    Args:
        tag: The tag.
        end: What stands behind a value, the tag and the white space around it.
        words: true, false and null.
    """

    def written(text: str) -> str:
        if tag in text:
            raise UnwritableError
        return text

    rules = {"text": f"until {literal(end.partition(tag)[2])}", "until": until(tag)}
    return TextValues(rules, end, words, written, ("<", "/"))


class TextGrammar:
    """Writes such values, with the rest of a grammar."""

    def __init__(self, values: ValueGrammar, form: TextValues, schema: JsonObject) -> None:
        """Write the arguments of a tool, whose `schema` the parser reads them by."""
        self._values = values
        self._form = form
        self._schema = schema
        self._end = literal(form.end)
        values.rules.update(form.rules)

    def value(self, schema: JsonValue, name: str | None) -> str:
        """The values of the argument `name`, with their end; None: of one without a schema.

        Raises:
            UnwritableError: There are none, or none that would be read as such.
        """
        types = types_of(self._schema, name)
        key = f"{sorted(types)} {msgspec.json.encode(schema).decode()}"
        return self._values.named(key, lambda: self._body(schema, types))

    def _body(self, schema: JsonValue, types: frozenset[str]) -> str:
        found = leaves(schema, self._values.root)
        free = {str(leaf.get("type", "null")) for leaf in found if leaf and _is_free(leaf)}
        held = _held(types, free)
        if {} in found or (STRING in free and not held):
            return "text"
        return self._values.written([partial(self._leaf, leaf, types, held) for leaf in found])

    def _leaf(self, leaf: JsonObject, types: frozenset[str], held: frozenset[str]) -> str:
        if "const" in leaf:
            return f"{self._constant(leaf['const'], types)} {self._end}"
        if leaf.get("type") == STRING:
            return self._string(leaf, held)
        words = self._form.words
        match leaf.get("type"):
            case "null":
                written = words["null"]
            case "boolean":
                written = any_of([words["true"], words["false"]])
            case _:
                written = self._values.leaf(leaf)
        return f"{written} {self._end}"

    def _constant(self, value: JsonValue, types: frozenset[str]) -> str:
        match value:
            case None | bool():
                return self._form.words[json.dumps(value)]
            case str():
                written = self._form.written(value)
                if json.loads(typed(value, types)) != value:
                    raise UnwritableError
                return literal(written)
        return self._values.constant(value)

    def _string(self, leaf: JsonObject, held: frozenset[str]) -> str:
        """Strings that are no value of another type."""
        barred = "".join(BEGINNINGS[kind] for kind in sorted(held)) + SPACE + "<&"
        first = characters([(ord(char), ord(char)) for char in barred], negated=True)
        regex = string_pattern(leaf)
        if regex is None:
            return f"({first} text | {self._end})"
        if not held or leaf.get("format") in NEVER_JSON:
            return f"{self._bounded(regex)} {self._end}"
        if "pattern" in leaf or "format" in leaf:
            raise UnwritableError
        # One character less.
        shortest, longest = int(str(leaf.get("minLength", 0))), leaf.get("maxLength")
        if longest == 0:
            return self._end
        most = "" if longest is None else int(str(longest)) - 1
        rest = self._bounded(f"^.{{{max(0, shortest - 1)},{most}}}$")
        return any_of([f"{first} {rest} {self._end}", *([] if shortest else [self._end])])

    def _bounded(self, regex: str) -> str:
        *others, last = self._form.barred
        for barred in others:
            try:
                return pattern(regex, barred, self._form.instead)
            except PatternError:
                continue
        return pattern(regex, last, self._form.instead)


def _is_free(leaf: JsonObject) -> bool:
    """Whether every value of its type will do."""
    if "type" not in leaf:
        return leaf == {"const": None}
    return not leaf.keys() & BOUNDS.get(str(leaf["type"]), set())


def _held(types: frozenset[str], free: set[str]) -> frozenset[str]:
    """Types that a text may be read as, and may not follow the schema then."""
    return types - free - ({"integer"} if "number" in free else set()) - {STRING}
