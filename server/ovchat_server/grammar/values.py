"""From the shapes of a schema to the grammar of values that follow it, in a notation.

JSON stands on one line, `{"name": "Anna", "tags": ["a", "b"]}`: small models, once in free white
space, never leave it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.api.errors import shortened
from ovchat_server.grammar.ebnf import (
    CHARACTERS,
    Again,
    Alphabet,
    Rule,
    apart,
    ends,
    grammar,
    joined,
    literal,
)
from ovchat_server.grammar.json_text import json_text
from ovchat_server.grammar.notation import JSON, UnwritableError, verbatim
from ovchat_server.grammar.rules import Member, Rules
from ovchat_server.grammar.schema.nodes import PatternError, matches
from ovchat_server.grammar.schema.numbers import DIGITS, number_node
from ovchat_server.grammar.schema.patterns import may_match
from ovchat_server.grammar.schema.reading import SchemaReader
from ovchat_server.grammar.schema.shapes import (
    EVERY,
    Array,
    Number,
    Object,
    SchemaError,
    Shape,
    String,
    Values,
    both,
    equal,
    has,
)
from ovchat_server.grammar.schema.strings import string_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.ebnf import Alternative
    from ovchat_server.grammar.notation import Notation
    from ovchat_server.grammar.schema.nodes import Node

    # Makes the rule of the values of a schema that stands at a place, of the property of a name.
    PropertyRule = Callable[[JsonValue, str, str | None], Rule]

FREE_INTEGER = f'("0" | "-"? [1-9] [0-9]{{0,{DIGITS - 1}}})'
FREE_NUMBER = (
    f'"-"? ("0" | [1-9] [0-9]{{0,{DIGITS - 1}}}) ("." [0-9]{{1,{DIGITS}}})?'
    " ([eE] [+-]? [0-9]{1,2})?"
)
NUMERALS = Alphabet(CHARACTERS, verbatim)
ANYTHING: JsonValue = True
# What says nothing about values.
ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
DEFINITIONS = frozenset({"$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class Keys:
    """How the members of an object are written, but for their values. All texts are EBNF.

    Attributes:
        any: Any key.
        named: Writes one key; raises UnwritableError where it cannot.
        matching: Writes the keys of a tree.
        before: Stands before each key.
        after: Stands between a key and its value.
        comma: Stands between two members; "": nothing does.
        closing: Stands behind the last.
    """

    any: str
    named: Callable[[str], str]
    matching: Callable[[Node], str]
    after: str
    comma: str
    closing: str
    before: str = ""


class ValueWriter:
    """Writes one grammar: a schema that comes twice, or in itself, is one rule of it."""

    def __init__(self, root: JsonValue, notation: Notation) -> None:
        """Write values in `notation`, of schemas that may refer to parts of `root`."""
        self.reader = SchemaReader(root)
        self.rules = Rules()
        self._notation = notation
        self._quote = literal(notation.quote)
        self._comma = literal(notation.comma)
        self._keys = Keys(
            "key",
            notation.key,
            self._quoted,
            literal(notation.colon),
            self._comma,
            literal("}"),
        )
        self._known: dict[str, Rule] = {}
        self._open: list[Callable[[], None]] = []
        self._unwritable = ""

    def finished(self, *more: str) -> str:
        """Return the grammar of the first rule, with `more` rules that others refer to.

        Raises:
            SchemaError: Nothing follows it, or nothing that the notation can say.
        """
        while self._open:
            self._open.pop()()
        written = grammar(self.rules.rules)
        if not written and self._unwritable:
            raise SchemaError(f"asks for {self._unwritable}, so that it cannot be enforced")
        if not written:
            raise SchemaError("is a schema that no value follows, so that it cannot be enforced")
        needed = self._notation.rules if {"string", "key"} & {*written.split()} else ()
        return "\n".join([written, *needed, *more, *ends(written)])

    def rule(self, schema: JsonValue, place: str, _: str | None = None) -> Rule:
        """Return the rule of the values of a schema; it is filled later."""
        if isinstance(schema, dict):
            schema = {key: item for key, item in schema.items() if key not in ANNOTATIONS}
            if place and not schema.keys() - DEFINITIONS:
                schema = ANYTHING
        return self.named(json_text(schema), place, lambda: self._values(schema, place))

    def named(self, key: str, place: str, fill: Callable[[], list[Alternative]]) -> Rule:
        """Return the rule of whatever `key` stands for; `fill` is asked once, and later."""
        if key not in self._known:
            rule = self._known[key] = self.rules.new([])

            def filled() -> None:
                with placed(place):
                    rule.alternatives += apart(fill())

            self._open.append(filled)
        return self._known[key]

    def _values(self, schema: JsonValue, place: str) -> list[Alternative]:
        shapes = self.reader.shapes(schema)
        if shapes == EVERY and schema is not ANYTHING:
            return [(self.rule(ANYTHING, place),)]
        return [option for shape in shapes for option in self.written(shape, place)]

    def written(self, shape: Shape, place: str) -> list[Alternative]:
        """Return the values of a shape whose schema stands at `place`.

        Raises:
            SchemaError: They cannot be told.
            PatternError: Nor can those of a pattern.
        """
        match shape:
            case Values(values):
                return [(text,) for value in values if (text := self.constant(value))]
            case Number():
                return [(number_text(shape),)]
            case String():
                return [("string" if shape == String() else self._quoted(string_node(shape)),)]
            case Array():
                return self._array(shape, place)
            case Object():
                members = self.members(shape, place, self._keys, self.rule)
                return [(literal("{"), *rest) for rest in members]

    def constant(self, value: JsonValue) -> str:
        """Return the EBNF of one value; "" where the notation cannot say it."""
        match value:
            case None | bool():
                return self._notation.words[json_text(value)]
            case str():
                return self.possible(self._notation.text, value)
            case list():
                items = [*map(self.constant, value)]
                return self._between("[", items, "]")
            case dict():
                members = [
                    joined(key, self._keys.after, text)
                    if (key := self.possible(self._keys.named, name))
                    and (text := self.constant(value[name]))
                    else ""
                    for name in self.ordered(value)
                ]
                return self._between("{", members, "}")
        return literal(json_text(value))

    def _between(self, opening: str, items: list[str], closing: str) -> str:
        if not all(items):
            return ""
        listed = [part for item in items for part in (self._comma, item)]
        return joined(literal(opening), *listed[1:], literal(closing))

    def possible(self, write: Callable[[str], str], text: str) -> str:
        """Return what `write` makes of a text; "" where it cannot, which may be an error later."""
        try:
            return write(text)
        except UnwritableError as error:
            return self.impossible(str(error))

    def impossible(self, what: str) -> str:
        """Return "", in place of what cannot be written."""
        self._unwritable = self._unwritable or what
        return ""

    def ordered(self, names: JsonObject) -> list[str]:
        """Return the names of properties as the notation orders them."""
        return sorted(names, key=str.lower) if self._notation.ordered else [*names]

    def _quoted(self, node: Node) -> str:
        return f"{self._quote} {self._notation.alphabet.content(node)} {self._quote}"

    def _array(self, shape: Array, place: str) -> list[Alternative]:
        if shape.unique and (shape.most is None or shape.most > 1):
            return self._set(shape)
        count = len(shape.first)
        # From the last: what follows so many items, to the end.
        following = self.rules.joined(self._others(shape, place))
        for index in reversed(range(count)):
            item = self.rule(shape.first[index], f"{place}/prefixItems/{index}")
            options: list[Alternative] = [(literal("]"),)] if index >= shape.fewest else []
            if shape.most is None or index < shape.most:
                options.append((self._comma if index else "", item, *following))
            following = self.rules.joined(options)
        return [(literal("["), *following)]

    def _others(self, shape: Array, place: str) -> list[Alternative]:
        """What follows the items that have a schema of their own, to the end."""
        count = len(shape.first)
        fewest = max(shape.fewest - count, 0)
        most = None if shape.most is None else max(shape.most - count, 0)
        options: list[Alternative] = [] if fewest else [(literal("]"),)]
        if most == 0 or (most is not None and most < fewest):
            return options
        item = self.rule(shape.rest, f"{place}/items")
        more = self.rules.new([(self._comma, item)])
        least = max(fewest, 1)
        if count:
            options.append((Again(more, least, most), literal("]")))
            return options
        options.append((item, *_again(more, least - 1, most), literal("]")))
        return options

    def _set(self, shape: Array) -> list[Alternative]:
        """An array of different values, in the order in which they are listed."""
        values: list[JsonValue] = []
        for kind in self.reader.shapes(shape.rest):
            if shape.first or not isinstance(kind, Values):
                raise SchemaError("uses uniqueItems of values that are not listed")
            for value in kind.values:
                if not any(equal(value, known) for known in values):
                    values.append(value)
        members = [Member((text,)) for value in values if (text := self.constant(value))]
        picked = self.rules.picked(members, shape.fewest, shape.most, literal("]"), self._comma)
        return [(literal("["), *picked)]

    def members(
        self, shape: Object, place: str, keys: Keys, value: PropertyRule
    ) -> list[Alternative]:
        """Return the members of the objects of a shape, and what closes them.

        Args:
            shape: Of the objects.
            place: Where its schema stands.
            keys: How members are written.
            value: Makes the rules of their values.

        Raises:
            SchemaError: They cannot be told.
        """
        properties = self.properties(shape)
        if not properties:
            return self._map(shape, place, keys, value)
        members = []
        for name in self.ordered(properties):
            child = value(properties[name], f"{place}/properties/{name}", name)
            key = self.possible(keys.named, name)
            parts = (joined(keys.before, key, keys.after), child) if key else (self.rules.new([]),)
            members.append(Member(parts, needed=name in shape.required))
        return [self.rules.picked(members, shape.fewest, shape.most, keys.closing, keys.comma)]

    def properties(self, shape: Object) -> JsonObject:
        """Return the properties that an object has or may have, where it is known which."""
        wanted = dict.fromkeys([*shape.properties, *shape.required])
        named = self.reader.shapes(both({"type": "string"}, shape.names))
        listed = [kind.values for kind in named if isinstance(kind, Values)]
        if len(listed) == len(named):
            wanted |= dict.fromkeys(str(name) for values in listed for name in values)
        properties: JsonObject = {}
        for name in wanted:
            child = shape.properties.get(name, shape.rest)
            for pattern, other in shape.patterns.items():
                if matches(may_match(pattern), name):
                    child = both(child, other)
            properties[name] = child if any(has(name, kind) for kind in named) else False
        return properties

    def _map(self, shape: Object, place: str, keys: Keys, value: PropertyRule) -> list[Alternative]:
        """An object of any properties that have a name and a value of some kind."""
        options: list[Alternative] = [] if shape.fewest else [(keys.closing,)]
        if shape.fewest > 1:
            raise SchemaError("uses minProperties where a property may stand twice")
        if shape.most == 0:
            return options
        names, values = shape.names, shape.rest
        if shape.patterns:
            [(pattern, values), *others] = shape.patterns.items()
            if others:
                raise SchemaError("uses patternProperties of several patterns")
            names = both({"pattern": pattern}, names)
        names = both({"type": "string"}, names)
        key = self.named(
            f"key {json_text(names)}", f"{place}/propertyNames", lambda: self._key(names, keys)
        )
        child = value(values, f"{place}/additionalProperties", None)
        member = (keys.before, key, keys.after, child)
        more = self.rules.new([(keys.comma, *member)])
        options.append((*member, *_again(more, 0, shape.most), keys.closing))
        return options

    def _key(self, names: JsonValue, keys: Keys) -> list[Alternative]:
        options: list[str] = []
        for shape in self.reader.shapes(names):
            match shape:
                case Values(values):
                    options += [self.possible(keys.named, str(name)) for name in values]
                case String():
                    free = shape == String()
                    options.append(keys.any if free else keys.matching(string_node(shape)))
        return [(text,) for text in options if text]


def number_text(shape: Number) -> str:
    """Return the EBNF of some numbers.

    Raises:
        SchemaError: There are none, or too many to say which.
    """
    if shape == Number():
        return FREE_NUMBER
    if shape == Number(whole=True):
        return FREE_INTEGER
    return NUMERALS.content(number_node(shape))


def _again(rule: Rule, fewest: int, most: int | None) -> Alternative:
    """A rule, where `most` counts one that stands before."""
    return () if most == 1 else (Again(rule, fewest, None if most is None else most - 1),)


def json_grammar(schema: JsonValue) -> str:
    """Return the EBNF of the JSON that follows `schema`.

    Raises:
        SchemaError: It cannot be enforced.
    """
    writer = ValueWriter(schema, JSON)
    writer.rule(schema, "")
    return writer.finished()


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Tell of what cannot be enforced where it is.

    Args:
        place: A JSON pointer; "": the whole schema.
    """
    try:
        yield
    except (PatternError, RecursionError, SchemaError) as error:
        complaint = str(error)
        if isinstance(error, PatternError):
            complaint = f"uses a pattern that {error}"
        elif isinstance(error, RecursionError):
            complaint = "refers to too many schemas in each other's places"
        where = shortened(place or "the top")
        raise SchemaError(f"{complaint} at {where}, which cannot be enforced") from error
