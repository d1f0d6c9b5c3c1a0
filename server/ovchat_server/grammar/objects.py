"""The members of objects: which there may be, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.grammar.ebnf import joined
from ovchat_server.grammar.json_text import json_text
from ovchat_server.grammar.rules import Member, Rule, again
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.nodes import matches
from ovchat_server.grammar.schema.patterns import may_match
from ovchat_server.grammar.schema.shapes import Object, String, Values, conforms, intersect_schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.rules import Alternative
    from ovchat_server.grammar.schema.nodes import Node
    from ovchat_server.grammar.values import ValueWriter

    # Makes the rule of the values of a schema that stands at a place, of the property of a name.
    PropertyRule = Callable[[JsonValue, str, str | None], Rule]


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


class ObjectWriter:
    """Writes members, with the rest of a grammar."""

    def __init__(self, values: ValueWriter) -> None:
        """Write members with rules of `values`."""
        self._values = values

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
        members, rules = [], self._values.rules
        for name in self._values.ordered(properties):
            child = value(properties[name], f"{place}/properties/{name}", name)
            key = self._values.possible(keys.named, name)
            parts = (joined(keys.before, key, keys.after), child) if key else (rules.new([]),)
            members.append(Member(parts, needed=name in shape.required))
        return [rules.optional_subset(members, shape.fewest, shape.most, keys.closing, keys.comma)]

    def properties(self, shape: Object) -> JsonObject:
        """Return the properties that an object has or may have, where it is known which."""
        wanted = dict.fromkeys([*shape.properties, *shape.required])
        named = self._values.reader.shapes(intersect_schemas({"type": "string"}, shape.names))
        listed = [kind.values for kind in named if isinstance(kind, Values)]
        if len(listed) == len(named):
            wanted |= dict.fromkeys(str(name) for values in listed for name in values)
        properties: JsonObject = {}
        for name in wanted:
            child = shape.properties.get(name, shape.rest)
            for pattern, other in shape.patterns.items():
                if matches(may_match(pattern), name):
                    child = intersect_schemas(child, other)
            properties[name] = child if any(conforms(name, kind) for kind in named) else False
        return properties

    def _map(self, shape: Object, place: str, keys: Keys, value: PropertyRule) -> list[Alternative]:
        """Return the alternatives of an object of any properties with the same schemas."""
        options: list[Alternative] = [] if shape.fewest else [(keys.closing,)]
        if shape.fewest > 1:
            raise SchemaError("uses minProperties where a property may occur twice")
        if shape.most == 0:
            return options
        names, values = shape.names, shape.rest
        if shape.patterns:
            [(pattern, values), *others] = shape.patterns.items()
            if others:
                raise SchemaError("uses patternProperties of several patterns")
            names = intersect_schemas({"pattern": pattern}, names)
        names = intersect_schemas({"type": "string"}, names)
        key = self._values.rules.of_schema(
            f"key {json_text(names)}",
            names,
            f"{place}/propertyNames",
            lambda new: self._key(new, keys),
            self._values.rules.location(
                names, f"{place}/{'patternProperties' if shape.patterns else 'propertyNames'}"
            ),
        )
        child = value(values, f"{place}/additionalProperties", None)
        member = (keys.before, key, keys.after, child)
        more = self._values.rules.new([(keys.comma, *member)])
        options.append((*member, *again(more, 0, shape.most), keys.closing))
        return options

    def _key(self, names: JsonValue, keys: Keys) -> list[Alternative]:
        options: list[str] = []
        for shape in self._values.reader.shapes(names):
            match shape:
                case Values(values):
                    options += [self._values.possible(keys.named, str(name)) for name in values]
                case String():
                    if shape == String():
                        options.append(keys.any)
                    else:
                        options.append(keys.matching(self._values.strings.node(shape)))
        return [(text,) for text in options if text]
