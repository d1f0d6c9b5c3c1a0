"""What a grammar leaves out of a schema that cannot be enforced as a whole: as little as possible.

A keyword is left out at its own place. What stays allows no less than the schema does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ovchat_server.grammar.places import Places
from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.references import References

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.grammar.places import Location

    # Whether the values of a schema can be told, in place of the one that is relaxed.
    Enforced = Callable[[JsonValue], bool]

# What stays where two keywords cannot be enforced together: the one that comes first. The others
# stay in the schema's order.
FIRST = (
    "type",
    "$ref",
    "const",
    "enum",
    "properties",
    "required",
    "prefixItems",
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "patternProperties",
    "pattern",
    "format",
    "if",
)
RANKS = {key: rank for rank, key in enumerate(FIRST)}
# Keywords of what others do not describe: they would allow less without those.
OF_THE_REST = {
    "additionalProperties": frozenset({"properties", "patternProperties"}),
    "items": frozenset({"prefixItems"}),
}
# Of what decides between them nothing is enforced, but that it is one of them.
BRANCHES = ("then", "else")
UNEVALUATED = "unevaluatedProperties"
NOTHING: frozenset[str] = frozenset()
# Of $refs in each other's places: what is behind more of them is left out as a whole.
MAX_TARGETS = 20


class Write(Protocol):
    """Writes the grammar of a schema in a notation."""

    def __call__(self, schema: JsonValue, relaxation: Relaxation | None = None, /) -> str:
        """Return the EBNF of what follows a schema, or what is left of it by a relaxation.

        Raises:
            SchemaError: It cannot be enforced; or even relaxed it is too large.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Keyword:
    """A keyword that cannot be enforced as it is.

    Attributes:
        at: Where its schema stands.
        kept: What is kept of its schema.
        enforced: Whether a schema can be, in the place of that.
        inside: The $refs whose targets the schema is part of.
    """

    key: str
    at: Location
    kept: JsonObject
    enforced: Enforced
    inside: frozenset[str]

    def also(self, schema: JsonValue) -> JsonObject:
        """Return what is kept, with another schema beside it."""
        return _with(self.kept, "allOf", [schema])


class Relaxation:
    """Relaxes the schemas within one schema, and knows what was left out."""

    def __init__(self, root: JsonValue) -> None:
        """Relax `root`, or schemas that stand in it."""
        self._references = References(root)
        self.places = Places(root)

    def anything(self, at: Location) -> JsonValue:
        """Leave out a whole schema."""
        self.places.leave_out(at.pointer)
        return {}

    def relaxed(
        self,
        schema: JsonValue,
        at: Location,
        enforced: Enforced,
        inside: frozenset[str] = frozenset(),
    ) -> JsonValue:
        """Return what is left of a schema that `enforced` refuses.

        Args:
            schema: The schema.
            at: Where it stands.
            enforced: See there.
            inside: The $refs whose targets the schema is part of.
        """
        if not isinstance(schema, dict):
            return self.anything(at)
        kept: JsonObject = {}
        dropped: set[str] = set()
        before = self.places.count
        for key in sorted(schema, key=lambda key: RANKS.get(key, len(FIRST))):
            if key in BRANCHES and "if" in schema:
                continue
            alone = OF_THE_REST.get(key, NOTHING).isdisjoint(dropped)
            if alone and (key != UNEVALUATED or self.places.count == before):
                if enforced(whole := _with(kept, key, schema[key])):
                    kept = whole
                    continue
                part = self._part(schema, _Keyword(key, at, kept, enforced, inside))
                if part is not None and enforced(part):
                    kept = part
                    continue
            dropped.add(key)
            self.places.leave_out(at.of(key))
        return kept

    def _part(self, schema: JsonObject, keyword: _Keyword) -> JsonObject | None:
        """Return what is kept with what is left of a keyword; None: nothing is."""
        part: JsonObject | None = None
        match keyword.key, schema[keyword.key]:
            case "$ref", str() as reference if len(keyword.inside) < MAX_TARGETS:
                part = self._target(reference, keyword)
            case "allOf", list() as items:
                part = self._all_of(items, keyword)
            case "anyOf" | "oneOf", list() as items:
                part = self._any_of(items, keyword)
            case "if", _:
                part = self._branches(schema, keyword)
            case "required", [_, *_] as names:
                part = self._required(names, keyword)
            case "propertyNames", dict() as names:
                part = self._names(names, keyword)
        return part

    def _target(self, reference: str, keyword: _Keyword) -> JsonObject | None:
        """Put what is left of what a $ref refers to in its place."""
        try:
            target = self._references.target(reference)
        except SchemaError:
            return None
        if reference in keyword.inside:
            return None
        keyword = replace(keyword, inside=keyword.inside | {reference})
        return keyword.also(self._left(target, reference.removeprefix("#"), keyword))

    def _all_of(self, items: list[JsonValue], keyword: _Keyword) -> JsonObject:
        for index, item in enumerate(items):
            left = self._left(item, keyword.at.of(keyword.key, index), keyword)
            keyword = replace(keyword, kept=keyword.also(left))
        return keyword.kept

    def _any_of(self, items: list[JsonValue], keyword: _Keyword) -> JsonObject:
        options = [
            self._left(item, keyword.at.of(keyword.key, index), keyword)
            for index, item in enumerate(items)
        ]
        if keyword.key == "oneOf" and not keyword.enforced(keyword.also({"oneOf": options})):
            # They are not told apart, or too many.
            self.places.leave_out(keyword.at.of(keyword.key))
        return keyword.also({"anyOf": options})

    def _branches(self, schema: JsonObject, keyword: _Keyword) -> JsonObject:
        self.places.leave_out(keyword.at.of(keyword.key))
        branches = [
            self._left(schema[key], keyword.at.of(key), keyword) if key in schema else {}
            for key in BRANCHES
        ]
        return keyword.also({"anyOf": branches}) if any(branches) else keyword.kept

    def _names(self, names: JsonObject, keyword: _Keyword) -> JsonObject:
        put = partial(_with, keyword.kept, keyword.key)
        where = self.places.location(names, keyword.at.of(keyword.key))
        return put(
            self.relaxed(names, where, lambda new: keyword.enforced(put(new)), keyword.inside)
        )

    def _required(self, names: list[JsonValue], keyword: _Keyword) -> JsonObject:
        kept: list[JsonValue] = []

        def keep(start: int, end: int) -> None:
            more = [*kept, *names[start:end]]
            if keyword.enforced({**keyword.kept, keyword.key: more}):
                kept[:] = more
            elif end - start == 1:
                self.places.leave_out(keyword.at.of(keyword.key, start))
            else:
                middle = (start + end) // 2
                keep(start, middle)
                keep(middle, end)

        keep(0, len(names))
        return {**keyword.kept, keyword.key: kept}

    def _left(self, item: JsonValue, pointer: str, keyword: _Keyword) -> JsonValue:
        """Return what is left of a schema that is to be followed beside what is kept."""

        def enforced(new: JsonValue) -> bool:
            return keyword.enforced(keyword.also(new))

        if enforced(item):
            return item
        return self.relaxed(item, self.places.location(item, pointer), enforced, keyword.inside)


def _with(kept: JsonObject, key: str, value: JsonValue) -> JsonObject:
    """Return a schema with one more keyword, or more of allOf."""
    before = kept.get(key)
    if key == "allOf" and isinstance(before, list) and isinstance(value, list):
        value = [*before, *value]
    return {**kept, key: value}
