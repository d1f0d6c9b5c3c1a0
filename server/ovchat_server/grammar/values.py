"""From the shapes of a schema to the grammar of values that follow it, in a notation.

JSON stands on one line, `{"name": "Anna", "tags": ["a", "b"]}`: small models, once in free white
space, never leave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import joined, literal
from ovchat_server.grammar.json_text import json_text
from ovchat_server.grammar.notation import JSON, UnwritableError
from ovchat_server.grammar.numerals import number_text
from ovchat_server.grammar.objects import Keys, ObjectWriter
from ovchat_server.grammar.rules import Again, Member, Rule, again, ends
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.reading import SchemaReader
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
from ovchat_server.grammar.schema.strings import Strings
from ovchat_server.grammar.schema_rules import SchemaRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.notation import Notation
    from ovchat_server.grammar.relaxation import Relaxation
    from ovchat_server.grammar.rules import Alternative
    from ovchat_server.grammar.schema.nodes import Node

ANYTHING: JsonValue = True
# What says nothing about values.
ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
DEFINITIONS = frozenset({"$defs", "definitions"})


class ValueWriter:
    """Writes one grammar: a schema that comes twice, or in itself, is one rule of it."""

    def __init__(
        self, root: JsonValue, notation: Notation, relaxation: Relaxation | None = None
    ) -> None:
        """Write values in a notation.

        Args:
            root: The schemas may refer to parts of it.
            notation: The notation.
            relaxation: Relaxes schemas that cannot be enforced; None: they are errors.
        """
        self.reader = SchemaReader(root)
        self.rules = SchemaRules(self.reader, relaxation)
        self.objects = ObjectWriter(self)
        self.strings = Strings()
        self._notation = notation
        self._quote = literal(notation.quote)
        self._comma = literal(notation.comma)
        self._keys = Keys(
            "key", notation.key, self._quoted, literal(notation.colon), self._comma, literal("}")
        )
        self._unwritable = ""

    def finished(self, *more: str) -> str:
        """Return the grammar of the first rule, with `more` rules that others refer to.

        Raises:
            SchemaError: Nothing follows it, or nothing that the notation can say.
        """
        written = self.rules.written()
        if not written and self._unwritable:
            raise SchemaError(f"asks for {self._unwritable}, so it cannot be enforced")
        if not written:
            raise SchemaError("is a schema that no value satisfies, so it cannot be enforced")
        needed = self._notation.rules if {"string", "key"} & {*written.split()} else ()
        return "\n".join([written, *needed, *more, *ends(written)])

    def rule(self, schema: JsonValue, place: str, _: str | None = None) -> Rule:
        """Return the rule of the values of a schema; it is filled later."""
        read = schema
        if isinstance(schema, dict):
            read = {key: item for key, item in schema.items() if key not in ANNOTATIONS}
            if place and not read.keys() - DEFINITIONS:
                read = ANYTHING
        at = self.rules.location(schema, place)
        return self.rules.of_schema(
            json_text(read), read, place, lambda new: self._values(new, place), at
        )

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
                free = shape == String()
                return [("string" if free else self._quoted(self.strings.node(shape)),)]
            case Array():
                return self._array(shape, place)
            case Object():
                members = self.objects.members(shape, place, self._keys, self.rule)
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
            item = self.rule(shape.first[index], f"{place}/{shape.keys[0]}/{index}")
            options: list[Alternative] = [(literal("]"),)] if index >= shape.fewest else []
            if shape.most is None or index < shape.most:
                options.append((self._comma if index else "", item, *following))
            following = self.rules.joined(options)
        return [(literal("["), *following)]

    def _others(self, shape: Array, place: str) -> list[Alternative]:
        """Return the alternatives of the items without a schema of their own, to the end."""
        count = len(shape.first)
        fewest = max(shape.fewest - count, 0)
        most = None if shape.most is None else max(shape.most - count, 0)
        options: list[Alternative] = [] if fewest else [(literal("]"),)]
        if most == 0 or (most is not None and most < fewest):
            return options
        item = self.rule(shape.rest, f"{place}/{shape.keys[1]}")
        more = self.rules.new([(self._comma, item)])
        least = max(fewest, 1)
        if count:
            options.append((Again(more, least, most), literal("]")))
            return options
        options.append((item, *again(more, least - 1, most), literal("]")))
        return options

    def _set(self, shape: Array) -> list[Alternative]:
        """Return the alternatives of an array of different values in the order of their list."""
        values: list[JsonValue] = []
        for kind in self.reader.shapes(shape.rest):
            if shape.first or not isinstance(kind, Values):
                raise SchemaError("uses uniqueItems without an enum of the items")
            for value in kind.values:
                if not any(equal(value, known) for known in values):
                    values.append(value)
        members = [Member((text,)) for value in values if (text := self.constant(value))]
        picked = self.rules.optional_subset(
            members, shape.fewest, shape.most, literal("]"), self._comma
        )
        return [(literal("["), *picked)]


def json_grammar(schema: JsonValue, relaxation: Relaxation | None = None) -> str:
    """Return the EBNF of the JSON that follows `schema`; see Write."""
    writer = ValueWriter(schema, JSON, relaxation)
    writer.rule(schema, "")
    return writer.finished()
