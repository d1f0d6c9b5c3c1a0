"""Shapes: what a schema allows for one type of value, and the intersection of two.

A schema is a list of shapes, and a value conforms to it if it conforms to one of them. Schemas
within a shape are kept unread: they may refer to themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.formats import of_format
from ovchat_server.grammar.schema.nodes import matches
from ovchat_server.grammar.schema.patterns import found_in, may_match

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonValue


@dataclass(frozen=True, slots=True)
class Values:
    """One of several values."""

    values: tuple[JsonValue, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number.

    Attributes:
        whole: Whether it is an integer.
        low: The minimum, exclusive if `above`.
        high: The maximum, exclusive if `below`.
        step: What it is a multiple of.
    """

    whole: bool = False
    low: Fraction | None = None
    above: bool = False
    high: Fraction | None = None
    below: bool = False
    step: Fraction | None = None


@dataclass(frozen=True, slots=True)
class String:
    """A string.

    Attributes:
        shortest: The minimum number of characters.
        longest: The maximum number of characters; None if unbounded.
        patterns: The patterns, all of which it matches.
        formats: The formats, all of which it has.
    """

    shortest: int = 0
    longest: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    """An array.

    Attributes:
        first: The schemas of the first items.
        rest: The schema of the other items.
        fewest: The minimum number of items.
        most: The maximum number of items; None if unbounded.
        unique: Whether no two items are equal.
        keys: What the schema calls `first` and `rest`, to tell where something is.
    """

    first: tuple[JsonValue, ...] = ()
    rest: JsonValue = True
    fewest: int = 0
    most: int | None = None
    unique: bool = False
    keys: tuple[str, str] = field(default=("prefixItems", "items"), compare=False)


@dataclass(frozen=True, slots=True)
class Object:
    """An object.

    Attributes:
        properties: The schemas of declared properties.
        required: The names of required properties.
        patterns: The schemas of properties whose names match a pattern.
        rest: The schema of other properties.
        names: The schema of names.
        fewest: The minimum number of properties.
        most: The maximum number of properties; None if unbounded.
    """

    properties: Mapping[str, JsonValue] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    patterns: Mapping[str, JsonValue] = field(default_factory=dict)
    rest: JsonValue = True
    names: JsonValue = True
    fewest: int = 0
    most: int | None = None


# Bounds beyond it are replaced by it.
LARGEST = 10**30
Shape = Values | Number | String | Array | Object
KINDS: dict[str, Shape] = {
    "null": Values((None,)),
    "boolean": Values((True, False)),
    "integer": Number(whole=True),
    "number": Number(),
    "string": String(),
    "array": Array(),
    "object": Object(),
}
EVERY = [shape for kind, shape in KINDS.items() if kind != "integer"]


def intersect_schemas(one: JsonValue, other: JsonValue) -> JsonValue:
    """Return a schema of the values that conform to both schemas."""
    if one == other or other is True or other == {}:
        return one
    if one is True or one == {}:
        return other
    joined = one["allOf"] if isinstance(one, dict) and one.keys() == {"allOf"} else [one]
    if not isinstance(joined, list):
        joined = [one]
    return {"allOf": joined if other in joined else [*joined, other]}


def intersect(one: Shape, other: Shape) -> Shape | None:
    """Return the intersection of two shapes; None if it is empty.

    Raises:
        SchemaError: It cannot be expressed.
    """
    if isinstance(other, Values):
        one, other = other, one
    match one, other:
        case Values(values), _:
            kept = tuple(value for value in values if conforms(value, other))
            return Values(kept) if kept else None
        case Number(), Number():
            return _numbers(one, other)
        case String(), String():
            return _strings(one, other)
        case Array(), Array():
            return _arrays(one, other)
        case Object(), Object():
            return _objects(one, other)
    return None


def conforms(value: JsonValue, shape: Shape) -> bool:
    """Return whether a value conforms to a shape.

    Raises:
        SchemaError: It cannot be determined easily.
    """
    match shape:
        case Values(values):
            return any(equal(value, item) for item in values)
        case Number():
            return isinstance(value, int | float) and _fits(value, shape)
        case String():
            return isinstance(value, str) and _is_string(value, shape)
        case Array() | Object():
            if not isinstance(value, list if isinstance(shape, Array) else dict):
                return False
            if shape not in (Array(), Object()):
                raise SchemaError("uses const or enum beside keywords of an array or object")
    return True


def equal(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same in JSON: 1 is 1.0, but not true."""
    match one, other:
        case list(), list():
            return len(one) == len(other) and all(map(equal, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _is_string(value: str, shape: String) -> bool:
    longest = len(value) if shape.longest is None else shape.longest
    if not shape.shortest <= len(value) <= longest:
        return False
    if not all(matches(may_match(pattern), value) for pattern in shape.patterns):
        return False
    surely = [*map(found_in, shape.patterns), *map(of_format, shape.formats)]
    if not all(matches(node, value) for node in surely):
        raise SchemaError("uses const or enum with a pattern or format that may not match")
    return True


def _fits(value: float, shape: Number) -> bool:
    if isinstance(value, bool):
        return False
    if abs(value) > LARGEST:
        raise SchemaError("uses a constant that is too large to compare")
    exact = Fraction(str(value))
    return not (
        (shape.whole and exact.denominator != 1)
        or (shape.low is not None and (exact, False) < (shape.low, shape.above))
        or (shape.high is not None and (-exact, False) < (-shape.high, shape.below))
        or (shape.step is not None and (exact / shape.step).denominator != 1)
    )


def _numbers(one: Number, other: Number) -> Number | None:
    low, above = one.low, one.above
    if other.low is not None and (low is None or (other.low, other.above) > (low, above)):
        low, above = other.low, other.above
    high, below = one.high, one.below
    if other.high is not None and (high is None or (-other.high, other.below) > (-high, below)):
        high, below = other.high, other.below
    if low is not None and high is not None and (low > high or (low == high and (above or below))):
        return None
    steps = [step for step in (one.step, other.step) if step is not None]
    step = _common_step(*steps) if len(steps) > 1 else steps[0] if steps else None
    return Number(one.whole or other.whole, low, above, high, below, step)


def _common_step(one: Fraction, other: Fraction) -> Fraction:
    denominator = one.denominator * other.denominator
    numerators = one.numerator * other.denominator, other.numerator * one.denominator
    return Fraction(math.lcm(*numerators), denominator)


def _strings(one: String, other: String) -> String | None:
    shortest = max(one.shortest, other.shortest)
    longest = _least(one.longest, other.longest)
    if longest is not None and longest < shortest:
        return None
    patterns = tuple(dict.fromkeys(one.patterns + other.patterns))
    formats = tuple(dict.fromkeys(one.formats + other.formats))
    return String(shortest, longest, patterns, formats)


def _arrays(one: Array, other: Array) -> Array:
    size = max(len(one.first), len(other.first))
    return Array(
        tuple(intersect_schemas(_item(one, at), _item(other, at)) for at in range(size)),
        intersect_schemas(one.rest, other.rest),
        max(one.fewest, other.fewest),
        _least(one.most, other.most),
        one.unique or other.unique,
        one.keys if one.first else other.keys,
    )


def _objects(one: Object, other: Object) -> Object:
    if (one.patterns or other.patterns) and not (_free(one) or _free(other)):
        raise SchemaError("uses patternProperties in several schemas of one object")
    names = dict.fromkeys([*one.properties, *other.properties])
    return Object(
        {name: intersect_schemas(_property(one, name), _property(other, name)) for name in names},
        tuple(dict.fromkeys(one.required + other.required)),
        {**one.patterns, **other.patterns},
        intersect_schemas(one.rest, other.rest),
        intersect_schemas(one.names, other.names),
        max(one.fewest, other.fewest),
        _least(one.most, other.most),
    )


def _free(shape: Object) -> bool:
    """Return whether an object has no schemas for properties by name or pattern."""
    return not shape.properties and not shape.patterns and shape.rest in (True, {})


def _property(shape: Object, name: str) -> JsonValue:
    return shape.properties.get(name, shape.rest)


def _item(shape: Array, index: int) -> JsonValue:
    return shape.first[index] if index < len(shape.first) else shape.rest


def _least(one: int | None, other: int | None) -> int | None:
    return min((size for size in (one, other) if size is not None), default=None)
