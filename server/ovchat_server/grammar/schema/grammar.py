"""The grammar of the JSON that follows a schema: `{"name": "Anna", "tags": ["a", "b"]}`.

There is no other white space: small models, once in it, never leave it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ovchat_server.api.errors import shortened
from ovchat_server.grammar.schema.ebnf import Again, Rule, grammar, quoted
from ovchat_server.grammar.schema.json_text import json_text
from ovchat_server.grammar.schema.nodes import PatternError, matches
from ovchat_server.grammar.schema.numbers import number_text
from ovchat_server.grammar.schema.patterns import may_match
from ovchat_server.grammar.schema.reading import SchemaReader
from ovchat_server.grammar.schema.rules import Member, Rules
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
from ovchat_server.grammar.schema.strings import MARK, PIECES, string_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.api.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.schema.ebnf import Alternative

ANY_PARAMETER = (
    'TagDispatch(stop_eos=true, stop_str=(), loop_after_dispatch=false, excludes=("</parameter>"))'
)
ANYTHING: JsonValue = True
# What says nothing about values.
ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})
DEFINITIONS = frozenset({"$defs", "definitions"})


def schema_grammar(schema: JsonValue) -> str:
    """The EBNF of the JSON that follows `schema`, its root rule called "root".

    Raises:
        SchemaError: It cannot be enforced.
    """
    return _Writer(schema).write(schema)


def parameters_grammar(schema: JsonValue) -> str:
    """The EBNF of an object as Qwen's models write the arguments of calls.

    That is `<parameter=name>`, the value on lines of its own, `</parameter>`; strings that may
    be anything without quotation marks, all else as JSON.

    Raises:
        SchemaError: It cannot be enforced.
    """
    return _Writer(schema).write_parameters(schema)


class _Writer:
    """Writes one grammar."""

    def __init__(self, root: JsonValue) -> None:
        self._reader = SchemaReader(root)
        self._rules = Rules()
        self._known: dict[str, Rule] = {}
        self._open: list[tuple[Rule, JsonValue, str]] = []
        self._ending_string: Rule | None = None

    def write(self, schema: JsonValue) -> str:
        self._rule(schema, "")
        return self._finished()

    def write_parameters(self, schema: JsonValue) -> str:
        root = self._rules.new([])
        with _placed(""):
            for shape in self._reader.shapes(schema):
                root.alternatives.append(self._parameters(shape))
        return self._finished()

    def _parameters(self, shape: Shape) -> Alternative:
        properties = self._properties(shape) if isinstance(shape, Object) else {}
        if not isinstance(shape, Object) or not properties:
            raise SchemaError("has a qwen_xml_parameter that is no object of known properties")
        text = self._rules.new([(ANY_PARAMETER,)])
        members = []
        for name, child in properties.items():
            free = self._reader.shapes(child) == [String()]
            value = text if free else self._rule(child, f"/properties/{name}")
            parts = (quoted(f"<parameter={name}>\n"), value, quoted("\n</parameter>"))
            members.append(Member(parts, needed=name in shape.required))
        return self._rules.picked(members, shape.fewest, shape.most, "", separator="\n")

    def _finished(self) -> str:
        while self._open:
            rule, waiting, place = self._open.pop()
            with _placed(place):
                self._fill(rule, waiting, place)
        written = grammar(self._rules.rules)
        if not written:
            raise SchemaError("is a schema that no value follows, so that it cannot be enforced")
        return written

    def _rule(self, schema: JsonValue, place: str) -> Rule:
        """The rule of a schema; it is filled later."""
        if isinstance(schema, dict):
            schema = {key: item for key, item in schema.items() if key not in ANNOTATIONS}
            if place and not schema.keys() - DEFINITIONS:
                schema = ANYTHING
        key = json_text(schema)
        if key not in self._known:
            self._known[key] = self._rules.new([])
            self._open.append((self._known[key], schema, place))
        return self._known[key]

    def _fill(self, rule: Rule, schema: JsonValue, place: str) -> None:
        shapes = self._reader.shapes(schema)
        if shapes == EVERY and schema is not ANYTHING:
            rule.alternatives.append((self._rule(ANYTHING, place),))
            return
        for shape in shapes:
            rule.alternatives += self._written(shape, place)

    def _written(self, shape: Shape, place: str) -> list[Alternative]:
        match shape:
            case Values(values):
                return [(quoted(json_text(value)),) for value in values]
            case Number():
                return [(number_text(shape),)]
            case String():
                return [self._any_string() if shape == String() else (string_text(shape),)]
            case Array():
                return self._array(shape, place)
            case Object():
                return self._object(shape, place)

    def _any_string(self) -> Alternative:
        if self._ending_string is None:
            # A loop that ends with the quotation mark is what the compiler is quick at.
            rule = self._ending_string = self._rules.new([(MARK,)])
            rule.alternatives += [(piece, rule) for piece in PIECES]
        return (MARK, self._ending_string)

    def _array(self, shape: Array, place: str) -> list[Alternative]:
        if shape.unique and (shape.most is None or shape.most > 1):
            return self._set(shape)
        count = len(shape.first)
        # From the last: what follows so many items, to the end.
        following = self._rules.joined(self._others(shape, place))
        for index in reversed(range(count)):
            item = self._rule(shape.first[index], f"{place}/prefixItems/{index}")
            options: list[Alternative] = [(quoted("]"),)] if index >= shape.fewest else []
            if shape.most is None or index < shape.most:
                options.append((quoted(", ") if index else "", item, *following))
            following = self._rules.joined(options)
        return [(quoted("["), *following)]

    def _others(self, shape: Array, place: str) -> list[Alternative]:
        """What follows the items that have a schema of their own, to the end."""
        count = len(shape.first)
        fewest = max(shape.fewest - count, 0)
        most = None if shape.most is None else max(shape.most - count, 0)
        options: list[Alternative] = [] if fewest else [(quoted("]"),)]
        if most == 0 or (most is not None and most < fewest):
            return options
        item = self._rule(shape.rest, f"{place}/items")
        more = self._rules.new([(quoted(", "), item)])
        least = max(fewest, 1)
        if count:
            options.append((Again(more, least, most), quoted("]")))
            return options
        options.append((item, *_again(more, least - 1, most), quoted("]")))
        return options

    def _set(self, shape: Array) -> list[Alternative]:
        """An array of different values, in the order in which they are listed."""
        values: list[JsonValue] = []
        for kind in self._reader.shapes(shape.rest):
            if shape.first or not isinstance(kind, Values):
                raise SchemaError("uses uniqueItems of values that are not listed")
            for value in kind.values:
                if not any(equal(value, known) for known in values):
                    values.append(value)
        members = [Member((quoted(json_text(value)),)) for value in values]
        return [(quoted("["), *self._rules.picked(members, shape.fewest, shape.most, "]"))]

    def _object(self, shape: Object, place: str) -> list[Alternative]:
        properties = self._properties(shape)
        if not properties:
            return self._map(shape, place)
        members = [
            Member(
                (quoted(f"{json_text(name)}: "), self._rule(child, f"{place}/properties/{name}")),
                needed=name in shape.required,
            )
            for name, child in properties.items()
        ]
        return [(quoted("{"), *self._rules.picked(members, shape.fewest, shape.most, "}"))]

    def _properties(self, shape: Object) -> JsonObject:
        """The properties that an object has or may have, where it is known which."""
        wanted = dict.fromkeys([*shape.properties, *shape.required])
        named = self._reader.shapes(both({"type": "string"}, shape.names))
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

    def _map(self, shape: Object, place: str) -> list[Alternative]:
        """An object of any properties that have a name and a value of some kind."""
        options: list[Alternative] = [] if shape.fewest else [('"{}"',)]
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
        name = self._rule(both({"type": "string"}, names), f"{place}/propertyNames")
        member = (name, quoted(": "), self._rule(values, f"{place}/additionalProperties"))
        more = self._rules.new([(quoted(", "), *member)])
        options.append((quoted("{"), *member, *_again(more, 0, shape.most), quoted("}")))
        return options


def _again(rule: Rule, fewest: int, most: int | None) -> Alternative:
    """A rule, where `most` counts one that stands before."""
    return () if most == 1 else (Again(rule, fewest, None if most is None else most - 1),)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Tell of what cannot be enforced where it is."""
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
