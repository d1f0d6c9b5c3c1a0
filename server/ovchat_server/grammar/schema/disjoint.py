"""Whether shapes are disjoint, as far as that is easily determined."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.shapes import Object, Values, conforms, intersect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.grammar.schema.shapes import Shape

# How deeply nested objects are compared.
MAX_DEPTH = 3


def disjoint(
    one: Iterable[Shape],
    other: Iterable[Shape],
    read: Callable[[JsonValue], list[Shape]],
    depth: int = MAX_DEPTH,
) -> bool:
    """Return whether no value conforms to a shape of `one` and to a shape of `other`.

    Args:
        one: Some shapes.
        other: Some other shapes.
        read: Returns the shapes of a schema.
        depth: How many levels of properties to compare.
    """
    return all(
        _objects_disjoint(first, second, read, depth)
        if isinstance(first, Object) and isinstance(second, Object)
        else _values_disjoint(first, second)
        for first, second in itertools.product(one, other)
    )


def _objects_disjoint(
    one: Object, other: Object, read: Callable[[JsonValue], list[Shape]], depth: int
) -> bool:
    if _forbids(one, other.required) or _forbids(other, one.required):
        return True
    common = (
        set(one.required) & set(other.required) & one.properties.keys() & other.properties.keys()
    )
    return depth > 0 and any(
        disjoint(read(one.properties[name]), read(other.properties[name]), read, depth - 1)
        for name in sorted(common)
    )


def _forbids(shape: Object, names: Iterable[str]) -> bool:
    return (
        shape.rest is False
        and not shape.patterns
        and any(name not in shape.properties for name in names)
    )


def _values_disjoint(one: Shape, other: Shape) -> bool:
    values, shape = (one, other) if isinstance(one, Values) else (other, one)
    if not isinstance(values, Values):
        return intersect(one, other) is None
    try:
        return not any(conforms(value, shape) for value in values.values)
    except SchemaError:
        return False
