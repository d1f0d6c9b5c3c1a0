"""Reading schemas: from the keywords of a schema to its shapes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import shortened
from ovchat_server.grammar.schema.disjoint import disjoint
from ovchat_server.grammar.schema.errors import SchemaError, TooLargeError
from ovchat_server.grammar.schema.formats import PATTERNS
from ovchat_server.grammar.schema.references import References
from ovchat_server.grammar.schema.shapes import (
    EVERY,
    KINDS,
    LARGEST,
    Array,
    Number,
    Object,
    Shape,
    String,
    Values,
    intersect,
    intersect_schemas,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.json_value import JsonObject, JsonValue

# Keywords that are not enforced.
NEVER = (
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
)
# Schemas that are read, with references and combinations, over a whole schema.
MAX_READ = 20_000
# Comparisons to combine shapes, over a whole schema.
MAX_EFFORT = 300_000
# Of characters, items and properties.
MAX_COUNT = 10**9
# Each is compared with all others.
MAX_ONE_OF = 100


class SchemaReader:
    """Reads a schema and the schemas within it."""

    def __init__(self, root: JsonValue) -> None:
        """Read schemas that may refer to parts of `root`."""
        self._references = References(root)
        self._read = 0
        self._effort = 0

    def restart(self) -> None:
        """Count anew what is read, and what it takes to combine it."""
        self._read = self._effort = 0

    def shapes(self, schema: JsonValue, inside: frozenset[str] = frozenset()) -> list[Shape]:
        """Return the shapes of a schema's values.

        Args:
            schema: The schema.
            inside: The $refs whose targets the schema is part of.

        Raises:
            SchemaError: It cannot be enforced, or is not a schema.
        """
        self._read += 1
        if self._read > MAX_READ:
            raise TooLargeError("is too large when written as a grammar")
        if isinstance(schema, bool):
            return EVERY if schema else []
        if not isinstance(schema, dict):
            raise SchemaError("has no schema")
        if never := next(filter(schema.__contains__, NEVER), ""):
            raise SchemaError(f"uses {never}")
        shapes = _typed(schema)
        for part in self._parts(schema, inside):
            shapes = self._intersect_all(shapes, part)
        closed = schema.get("unevaluatedProperties") is False
        return [*map(_closed, shapes)] if closed else shapes

    def _intersect_all(self, one: list[Shape], other: list[Shape]) -> list[Shape]:
        shapes: list[Shape] = []
        for pair in itertools.product(one, other):
            self._effort += _effort(*pair) + len(shapes)
            if self._effort > MAX_EFFORT:
                raise TooLargeError("combines too many schemas")
            shape = intersect(*pair)
            if shape is not None and shape not in shapes:
                shapes.append(shape)
        return shapes

    def _parts(self, schema: JsonObject, inside: frozenset[str]) -> Iterator[list[Shape]]:
        """Yield the shapes of each keyword that is not one of a type."""
        if (reference := _text(schema, "$ref")) is not None:
            if reference in inside:
                raise SchemaError("uses a circular $ref")
            yield self.shapes(self._references.target(reference), inside | {reference})
        if "not" in schema:
            excluded = self.shapes(schema["not"], inside)
            if excluded not in ([], EVERY):
                raise SchemaError("uses not")
            yield [] if excluded else EVERY
        if "const" in schema:
            yield [Values((schema["const"],))]
        if "enum" in schema:
            yield [Values(tuple(_list(schema, "enum")))]
        if "anyOf" in schema:
            yield [shape for item in _list(schema, "anyOf") for shape in self.shapes(item, inside)]
        if "oneOf" in schema:
            yield self._one_of(schema, inside)
        for item in _list(schema, "allOf"):
            yield self.shapes(item, inside)

    def _one_of(self, schema: JsonObject, inside: frozenset[str]) -> list[Shape]:
        if len(_list(schema, "oneOf")) > MAX_ONE_OF:
            raise SchemaError(f"uses oneOf of more than {MAX_ONE_OF} schemas")
        # The keywords beside oneOf may make its options disjoint, too.
        beside = {key: value for key, value in schema.items() if key != "oneOf"}
        options = [
            self.shapes(intersect_schemas(item, beside), inside) for item in _list(schema, "oneOf")
        ]
        closed = [[*map(_closed, option)] for option in options]
        pairs = [*itertools.combinations(range(len(options)), 2)]
        if not all(disjoint(options[one], options[other], self.shapes) for one, other in pairs):
            if not all(
                disjoint(closed[one], options[other], self.shapes)
                and disjoint(options[one], closed[other], self.shapes)
                for one, other in pairs
            ):
                raise SchemaError("uses oneOf of schemas that may overlap")
            options = closed
        return [shape for option in options for shape in option]


def _effort(one: Shape, other: Shape) -> int:
    """Return the number of comparisons that combining two shapes takes."""
    match one, other:
        case Values(values), Values(others):
            return len(values) * len(others)
        case Object(), Object():
            return len(one.properties) + len(other.properties) + 1
    return 1


def _closed(shape: Shape) -> Shape:
    """Return the shape without undeclared properties."""
    if isinstance(shape, Object) and shape.rest in (True, {}):
        return replace(shape, rest=False)
    return shape


def _typed(schema: JsonObject) -> list[Shape]:
    """Return the shapes of the keywords of types."""
    types = schema.get("type", [*KINDS])
    kinds = [str(kind) for kind in (types if isinstance(types, list) else [types])]
    for kind in kinds:
        if kind not in KINDS:
            raise SchemaError(f"uses the unknown type {shortened(repr(kind))}")
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "integer"]
    return [shape for kind in kinds if (shape := _shape(kind, schema)) is not None]


def _shape(kind: str, schema: JsonObject) -> Shape | None:
    match kind:
        case "integer" | "number":
            return _number(schema, whole=kind == "integer")
        case "string":
            pattern, form = _text(schema, "pattern"), _text(schema, "format")
            shape = String(
                _count(schema, "minLength") or 0,
                _count(schema, "maxLength"),
                () if pattern is None else (pattern,),
                () if form not in PATTERNS else (form,),
            )
            return intersect(shape, String())
        case "array":
            return _array(schema)
        case "object":
            return _object(schema)
    return KINDS[kind]


def _number(schema: JsonObject, *, whole: bool) -> Shape | None:
    shape: Shape | None = Number(whole=whole, step=_step(schema))
    # In draft 4 true says that the bound itself is excluded.
    above, below = (schema.get(f"exclusive{name}") is True for name in ("Minimum", "Maximum"))
    for number in (
        Number(low=_fraction(schema, "minimum"), above=above),
        Number(low=_exclusive(schema, "exclusiveMinimum"), above=True),
        Number(high=_fraction(schema, "maximum"), below=below),
        Number(high=_exclusive(schema, "exclusiveMaximum"), below=True),
    ):
        shape = None if shape is None else intersect(shape, number)
    return shape


def _array(schema: JsonObject) -> Array:
    keys = ("prefixItems", "items")
    if isinstance(schema.get("items"), list):
        if "prefixItems" in schema:
            raise SchemaError("uses an array as items beside prefixItems")
        # As until 2019-09.
        keys = ("items", "additionalItems")
    return Array(
        tuple(_list(schema, keys[0])),
        schema.get(keys[1], True),
        _count(schema, "minItems") or 0,
        _count(schema, "maxItems"),
        schema.get("uniqueItems") is True,
        keys,
    )


def _object(schema: JsonObject) -> Object:
    required = _list(schema, "required")
    if not isinstance(schema.get("unevaluatedProperties", True), bool):
        raise SchemaError("uses a schema of unevaluatedProperties")
    return Object(
        _named(schema, "properties"),
        tuple(str(name) for name in required),
        _named(schema, "patternProperties"),
        schema.get("additionalProperties", True),
        schema.get("propertyNames", True),
        _count(schema, "minProperties") or 0,
        _count(schema, "maxProperties"),
    )


def _text(schema: JsonObject, key: str) -> str | None:
    value = schema.get(key)
    if not isinstance(value, str | None):
        raise SchemaError(f"uses a {key} that is not a string")
    return value


def _named(schema: JsonObject, key: str) -> JsonObject:
    value = schema.get(key, {})
    if not isinstance(value, dict):
        raise SchemaError(f"has {key} that are not an object")
    return value


def _list(schema: JsonObject, key: str) -> list[JsonValue]:
    value = schema.get(key, [])
    if not isinstance(value, list):
        raise SchemaError(f"uses {key} with a value that is not an array")
    return value


def _count(schema: JsonObject, key: str) -> int | None:
    number = _fraction(schema, key)
    if number is not None and (number < 0 or number.denominator != 1):
        raise SchemaError(f"has a {key} that is not a non-negative integer")
    if number is None or number <= MAX_COUNT:
        return None if number is None else int(number)
    if key.startswith("min"):
        raise SchemaError(f"has a {key} that is too large")
    # Nor that, so that it is no bound.
    return None


def _step(schema: JsonObject) -> Fraction | None:
    step = _fraction(schema, "multipleOf")
    if step is not None and step <= 0:
        raise SchemaError("has a multipleOf that is not above 0")
    return step


def _exclusive(schema: JsonObject, key: str) -> Fraction | None:
    return None if isinstance(schema.get(key), bool) else _fraction(schema, key)


def _fraction(schema: JsonObject, key: str) -> Fraction | None:
    number = schema.get(key)
    if key not in schema:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise SchemaError(f"uses {key} with a value that is not a number")
    # Beyond that nothing is written.
    if abs(number) > LARGEST:
        number = LARGEST if number > 0 else -LARGEST
    return Fraction(str(number))
