"""The grammar of values that follow a JSON Schema, in a notation."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.chat.dialects import ebnf
from ovchat_server.chat.dialects.ebnf import FRACTION, INTEGER, NOTHING, any_of, literal
from ovchat_server.chat.dialects.json_patterns import PatternError
from ovchat_server.chat.dialects.members import Keys, members
from ovchat_server.chat.dialects.notation import UnwritableError
from ovchat_server.chat.dialects.schema_leaves import leaves
from ovchat_server.chat.dialects.string_formats import FORMAT_PATTERNS
from ovchat_server.chat.dialects.string_patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.chat.dialects.notation import Notation

LARGEST = 10**ebnf.MOST_DIGITS - 1
ANY_VALUE = "any"
NUMBER = "number"


class ValueGrammar:
    """Collects the rules of one grammar. A schema that comes twice, or in itself, is one rule."""

    def __init__(self, notation: Notation, root: JsonObject) -> None:
        """Write values in `notation`, by schemas whose definitions stand in `root`."""
        self.root = root
        self._notation = notation
        self._words = notation.words
        self._comma = literal(notation.comma)
        colon = literal(notation.colon)
        quote = literal(notation.quote)
        self._keys = Keys(
            lambda name: f"{notation.key(name)} {colon}",
            lambda regex: f"{quote} {pattern(regex, notation.barred)} {quote} {colon}",
            f"key {colon}",
            self._comma,
            ordered=notation.ordered,
        )
        comma = f"{self._comma} {ANY_VALUE}"
        words = " | ".join(self._words.values())
        self.rules = {
            **notation.rules,
            NUMBER: f"{INTEGER} {FRACTION}",
            ANY_VALUE: f"string | {NUMBER} | {words} | list | object",
            "list": f'"[" ({ANY_VALUE} ({comma})*)? "]"',
            "object": f'"{{" (entry ({self._comma} entry)*)? "}}"',
            "entry": f"key {colon} {ANY_VALUE}",
        }
        self._names: dict[str, str] = {}

    def grammar(self, start: str) -> str:
        """All rules, of which `start` is the first."""
        return ebnf.grammar(start, self.rules)

    def value(self, schema: JsonValue) -> str:
        """Values that follow a schema.

        Raises:
            UnwritableError: There are none, or none that can be written.
        """
        return self.named(msgspec.json.encode(schema).decode(), lambda: self._body(schema))

    def named(self, key: str, body: Callable[[], str]) -> str:
        """The rule of whatever `key` stands for; its body is made once.

        Raises:
            UnwritableError: It has none.
        """
        if key in self._names:
            return self._names[key]
        known, ruled = len(self._names), len(self.rules)
        name = f"value{ruled}x{known}"
        self._names[key] = name
        try:
            self.rules[name] = body()
        except UnwritableError:
            # What was made for it may refer to it.
            for made in [*self._names][known:]:
                del self._names[made]
            for made in [*self.rules][ruled:]:
                del self.rules[made]
            raise
        return name

    def written(self, options: Sequence[Callable[[], str]]) -> str:
        """One of those options that can be written.

        Raises:
            UnwritableError: None can.
        """
        found = []
        for option in options:
            try:
                found.append(option())
            except (UnwritableError, PatternError):
                continue
        if not found:
            raise UnwritableError
        return any_of(found)

    def _body(self, schema: JsonValue) -> str:
        return self.written([partial(self.leaf, leaf) for leaf in leaves(schema, self.root)])

    def leaf(self, leaf: JsonObject) -> str:
        """One alternative of a schema; see `leaves`.

        Raises:
            UnwritableError: It has no values, or none that can be written.
            PatternError: Nor have its strings.
        """
        if "const" in leaf:
            return self.constant(leaf["const"])
        match leaf.get("type"):
            case None:
                written = ANY_VALUE
            case "null":
                written = self._words["null"]
            case "boolean":
                written = any_of([self._words["true"], self._words["false"]])
            case "integer":
                written = _integer(leaf)
            case "number":
                written = _number(leaf)
            case "string":
                written = self._string(leaf)
            case "array":
                written = self._array(leaf)
            case "object":
                inside = members(leaf, self._keys, lambda child, _: self.value(child))
                written = f'"{{" {inside} "}}"'
            case _:
                raise UnwritableError
        return written

    def constant(self, value: JsonValue) -> str:
        """One value.

        Raises:
            UnwritableError: It cannot be written.
        """
        match value:
            case str():
                return self._notation.text(value)
            case None | bool():
                return self._words[json.dumps(value)]
            case list():
                inside = f" {self._comma} ".join(map(self.constant, value))
                return f'"[" {inside} "]"'
            case dict():
                required: JsonObject = {
                    "properties": {name: {"const": child} for name, child in value.items()},
                    "required": [*value],
                    "additionalProperties": False,
                }
                return self.leaf({**required, "type": "object"})
        return literal(json.dumps(value))

    def _string(self, leaf: JsonObject) -> str:
        regex = string_pattern(leaf)
        if regex is None:
            return "string"
        quote = literal(self._notation.quote)
        return f"{quote} {pattern(regex, self._notation.barred)} {quote}"

    def _array(self, leaf: JsonObject) -> str:
        listed = leaf.get("prefixItems")
        fewest, most = _count(leaf, "minItems") or 0, _count(leaf, "maxItems")
        first = [self.value(item) for item in (listed if isinstance(listed, list) else [])[:most]]
        fewest = max(0, fewest - len(first))
        most = None if most is None else most - len(first)
        try:
            item = self.value(leaf.get("items", True))
        except UnwritableError:
            item, most = NOTHING, 0
        if most is not None and most < fewest:
            raise UnwritableError
        if first or most == 0:
            rest = ebnf.repeated(f"{self._comma} {item}", fewest, most)
            return f'"[" {f" {self._comma} ".join(first)} {rest} "]"'
        rest = ebnf.repeated(
            f"{self._comma} {item}", max(0, fewest - 1), None if most is None else most - 1
        )
        return f'"[" {item} {rest} "]"' if fewest else f'"[" ({item} {rest})? "]"'


def string_pattern(leaf: JsonObject) -> str | None:
    """The pattern of the strings of a schema; None where they may be any."""
    match leaf:
        case {"pattern": str(regex)}:
            return regex
        case {"format": str(name)} if name in FORMAT_PATTERNS:
            return FORMAT_PATTERNS[name]
    shortest, longest = _count(leaf, "minLength") or 0, _count(leaf, "maxLength")
    if not shortest and longest is None:
        return None
    if longest is not None and longest < shortest:
        raise UnwritableError
    return f"^.{{{shortest},{'' if longest is None else longest}}}$"


def _count(leaf: Mapping[str, JsonValue], key: str) -> int | None:
    value = leaf.get(key)
    return int(value) if isinstance(value, int | float) else None


def _integer(leaf: JsonObject) -> str:
    low, high = -LARGEST, LARGEST
    for key, lowest in (("minimum", math.ceil), ("exclusiveMinimum", lambda x: math.floor(x) + 1)):
        bound = leaf.get(key)
        if isinstance(bound, int | float):
            low = max(low, lowest(bound))
    for key, highest in (("maximum", math.floor), ("exclusiveMaximum", lambda x: math.ceil(x) - 1)):
        bound = leaf.get(key)
        if isinstance(bound, int | float):
            high = min(high, highest(bound))
    if low > high:
        raise UnwritableError
    return INTEGER if high - low == 2 * LARGEST else ebnf.integers(low, high)


def _number(leaf: JsonObject) -> str:
    # Other bounds are not enforced, see grammar.schema_support.
    positive = f"{INTEGER.removeprefix(ebnf.MINUS)} {FRACTION}"
    if "minimum" in leaf:
        return positive
    return f'("-" {positive} | "0")' if "maximum" in leaf else NUMBER
