"""Numbers within bounds: what is written is within them, and what is within them can be."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.nodes import matches
from ovchat_server.grammar.schema.numbers import number_node
from ovchat_server.grammar.schema.reading import SchemaReader
from ovchat_server.grammar.schema.shapes import Number

UNIT = Decimal("0.000001")
bounds = st.decimals(-2000, 2000, places=4, allow_nan=False) | st.sampled_from(
    [Decimal(text) for text in ("0", "1", "-1", "0.5", "100", "-273.15", "99.9999", "1000000")]
)


def exact(value: Any) -> Any:
    """A number as it is written; `jsonschema` divides others as floats."""
    number = value if value in ("integer", "number") else Decimal(str(value))
    return int(number) if isinstance(number, Decimal) and number == int(number) else number


def written(schema: dict[str, Any], text: str) -> bool:
    """Whether a number may be written so under a schema."""
    for shape in SchemaReader(schema).shapes({"type": "number", **schema}):
        assert isinstance(shape, Number)
        return matches(number_node(shape), text)
    return False


@given(
    low=bounds,
    width=st.decimals(Decimal("0.001"), 3000, places=4) | st.just(Decimal(0)),
    keys=st.tuples(
        st.sampled_from(["minimum", "exclusiveMinimum"]),
        st.sampled_from(["maximum", "exclusiveMaximum"]),
    ),
    share=st.decimals(-1, 2, places=3) | st.sampled_from([Decimal(0), Decimal(1)]),
    units=st.integers(-3, 3),
)
def test_a_number_can_be_written_where_it_is_within_the_bounds(
    low: Decimal, width: Decimal, keys: tuple[str, str], share: Decimal, units: int
) -> None:
    high = low + width
    schema = {"type": "number", keys[0]: float(low), keys[1]: float(high)}
    number = (low + width * share).quantize(UNIT) + units * UNIT
    above = number > low or (number == low and keys[0] == "minimum")
    below = number < high or (number == high and keys[1] == "maximum")
    long = f"{abs(number):f}"
    sign = "-" if number < 0 else ""

    for digits in {long, long.rstrip("0").rstrip(".")}:
        assert written(schema, sign + digits) == (above and below)
    assert not written(schema, f"{sign}0{long}")
    assert not written(schema, "-0.0")
    assert jsonschema.Draft202012Validator(schema).is_valid(float(number)) == (above and below)


@pytest.mark.parametrize(
    ("schema", "within", "beyond"),
    [
        (
            {"minimum": 0, "maximum": 1},
            "0 1 0.5 0.25 1.0 0.0 0.000001 1.000000",
            "1.1 -0 -0.5 00.5",
        ),
        ({"minimum": 0}, "0 100 999999999999999 3.75 12345678901.5", "-1 -0.000001 1e5 01 1. .5"),
        ({"exclusiveMinimum": 0, "maximum": 100}, "0.01 100 99.99 7", "0 0.0 0.000000 100.01"),
        ({"minimum": -5, "exclusiveMaximum": -3.75}, "-5 -4 -3.76 -3.750001", "-3.75 -3 -5.01 4"),
        ({"minimum": -90, "maximum": 90}, "-90 90 0 52.520008 -3.75 0.5", "90.1 -90.000001 -0.0"),
        (
            {"minimum": 1e-9, "maximum": 2e-9},
            "0.000000001 0.000000002 0.0000000015",
            "0 0.00000001",
        ),
        # A float cannot tell the next number apart from the bound.
        ({"exclusiveMinimum": 99999999999.5}, "99999999999.6", "99999999999.5 99999999999.500001"),
        ({"minimum": 3, "maximum": 3}, "3 3.0", "4 2.999999"),
        ({"type": "integer", "minimum": -5, "maximum": 10}, "-5 -1 0 10", "-0 00 1.0 -6 11"),
        ({"minimum": -(10**40), "maximum": 10**400}, "0 1 -999999999999999", ""),
    ],
)
def test_common_numbers(schema: dict[str, Any], within: str, beyond: str) -> None:
    for text in within.split():
        assert written(schema, text), text
        jsonschema.validate(float(text), schema)
    for text in beyond.split():
        assert not written(schema, text), text


@given(
    low=st.integers(-(10**6), 10**6),
    width=st.integers(0, 10**5),
    step=st.sampled_from([1, 2, 5, 10, 20, 25, 50, 100, 500, 1000]),
    number=st.integers(-(10**6), 10**6),
    near=st.integers(-3, 3),
)
def test_multiples_within_bounds(low: int, width: int, step: int, number: int, near: int) -> None:
    schema = {"type": "integer", "minimum": low, "maximum": low + width, "multipleOf": step}
    numbers = [number, low + near, low + width + near, (low // step + near) * step]
    numbers.append((low + width // 2) // step * step)
    for candidate in numbers:
        right = low <= candidate <= low + width and candidate % step == 0
        try:
            assert written(schema, str(candidate)) == right
        except SchemaError:
            assert not right


@pytest.mark.parametrize(
    ("schema", "within", "beyond"),
    [
        ({"multipleOf": 1}, "0 7 -12 123", "0.5 1.0"),
        ({"multipleOf": 5}, "0 5 10 -15 123455 -5", "1 54 -0 05 5.0"),
        ({"multipleOf": 0.5, "minimum": 0, "maximum": 100}, "0 0.5 99.5 100", "0.25 100.5"),
        ({"multipleOf": 7, "minimum": 0, "maximum": 100}, "0 7 98", "1 105"),
        ({"type": "integer", "multipleOf": 2.5, "minimum": 0, "maximum": 9}, "0 5", "2.5 2 7"),
        # As they are written: by floats, 0.3 is no multiple of 0.1.
        ({"multipleOf": 0.1, "minimum": 0, "maximum": 1}, "0 0.1 0.3 1", "0.15 1.1 -0.1"),
        ({"multipleOf": 0.01}, "0 4.35 4.5 4.50 -0.07 123456789.99 7", "4.355 4.500 -0 .5 4."),
        ({"multipleOf": 0.01, "exclusiveMinimum": 0}, "0.01 19.99", "0 0.00 -1 0.001"),
        ({"multipleOf": 0.05, "minimum": 0}, "0 0.05 0.15 1 1.5 1.50 1.95 123456.7", "0.01 1.52"),
        ({"multipleOf": 0.05, "minimum": -9, "maximum": -0.1}, "-0.1 -0.15 -9", "-0.05 -9.05 0"),
        ({"multipleOf": 0.005}, "0 0.005 1.995 -3.01 3.010 77", "0.001 1.994"),
        ({"multipleOf": 2.5, "exclusiveMaximum": 10}, "7.5 5 5.0 -12.5", "10 2 7.50 6.5"),
        ({"multipleOf": 0.03, "minimum": 0, "maximum": 9}, "0 0.03 0.3 0.30 9 8.97", "0.01 9.03"),
        ({"multipleOf": 1e-7, "minimum": 0, "maximum": 1e-6}, "0.0000003 0.000001", "0.00000035"),
        ({"type": "integer", "multipleOf": 0.01}, "0 7 -123", "0.5 1.00"),
    ],
)
def test_multiples(schema: dict[str, Any], within: str, beyond: str) -> None:
    exactly = jsonschema.Draft202012Validator({key: exact(schema[key]) for key in schema})
    for text in within.split():
        assert written(schema, text), text
        exactly.validate(exact(text))
    for text in beyond.split():
        assert not written(schema, text), text


@given(
    st.sampled_from(["0.01", "0.05", "0.1", "0.25", "0.005", "2.5", "12.5", "0.02", "0.125"]),
    st.decimals(-3000, 3000, places=3),
    st.decimals(0, 4000, places=3),
    st.integers(-(10**6), 10**6),
)
def test_multiples_of_decimals_within_bounds(
    step: str, low: Decimal, width: Decimal, units: int
) -> None:
    schema = {"multipleOf": float(step), "minimum": float(low), "maximum": float(low + width)}
    inner = (low + width / 2) // Decimal(step) * Decimal(step)
    for number in (units * Decimal(step), low // Decimal(step) * Decimal(step), inner, low):
        right = low <= number <= low + width and number % Decimal(step) == 0
        text = f"{number or 0:f}"
        short = text.rstrip("0").rstrip(".") if "." in text else text
        try:
            assert written(schema, short) == right
        except SchemaError:
            assert not right


@pytest.mark.parametrize(
    ("schema", "within", "beyond"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, "0.01 1", "0 -1"),
        ({"maximum": 5, "exclusiveMaximum": True, "type": "integer"}, "4 -5", "5"),
        ({"minimum": 0, "exclusiveMinimum": False}, "0 1", "-1"),
        (
            {"minimum": 1, "exclusiveMinimum": True, "maximum": 2, "exclusiveMaximum": True},
            "1.5",
            "1 2",
        ),
    ],
)
def test_bounds_as_in_draft_4(schema: dict[str, Any], within: str, beyond: str) -> None:
    for text in within.split():
        assert written(schema, text), text
        jsonschema.Draft4Validator(schema).validate(json.loads(text))
    for text in beyond.split():
        assert not written(schema, text), text
