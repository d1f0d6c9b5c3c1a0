"""Typed reading of untrusted fields.

Both doors hand in plain mappings: parsed JSON, or a message's set fields. A reader takes
typed values out of one mapping and notes what is wrong in a list that all readers of a
request share, so that a caller learns of every fault at once. A null counts as absent
(OpenAI's SDKs send nulls for what was not set).
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.domain.errors import InvalidRequestError, Violation, shortened
from ovchat_server.domain.field_path import ErrorText, FieldPath
from ovchat_server.domain.known_keys import unknown_keys
from ovchat_server.domain.limits import DEFAULT_LIMITS, deeper

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sized

    from ovchat_server.domain.field_path import Complaint, Field
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.known_keys import Keys
    from ovchat_server.domain.limits import Limits

T = TypeVar("T")

MAX_VIOLATIONS = 100
FLOAT32 = struct.Struct("f")


class Reader:
    """Reads one mapping. What cannot be read becomes a violation and reads as None."""

    def __init__(
        self,
        fields: Mapping[str, JsonValue],
        violations: list[Violation],
        path: FieldPath = FieldPath(),
        unknown: list[FieldPath] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Read `fields`, which stand at `path` in the request.

        Unknown keys of objects inside are noted in `unknown`, as faults are in `violations`.
        """
        self.limits = limits
        self.fields = fields
        self.violations = violations
        self.unknown = [] if unknown is None else unknown
        self._path = path

    @classmethod
    def of_request(cls, fields: Mapping[str, JsonValue], limits: Limits) -> Reader:
        """Return the reader of a whole request.

        Raises:
            InvalidRequestError: It is nested so deep that nobody should read on.
        """
        reader = cls(fields, [], limits=limits)
        depth = limits.max_json_depth
        for name, value in fields.items():
            if deeper(value, depth):
                complaint = f"is nested more than {depth} levels deep"
                reader.refuse(shortened(name), complaint)
        return reader.checked(reader)

    def checked(self, request: T) -> T:
        """Return what was read.

        Raises:
            InvalidRequestError: With every fault found.
        """
        if self.violations:
            raise InvalidRequestError.of(self.violations)
        return request

    def path(self, field: Field) -> FieldPath:
        """Return the full path of a field of this mapping, or of one inside of it."""
        return self._path / field

    def refuse(self, field: Field, complaint: Complaint, code: str = "invalid_value") -> None:
        """Note that a field is wrong; `complaint` completes "<field> ...", without the full stop.

        Raises:
            InvalidRequestError: Too much is wrong to read on.
        """
        sentence = ErrorText.of(complaint, ".")
        self.violations.append(Violation.of(self.path(field), sentence, code))
        if len(self.violations) == MAX_VIOLATIONS:
            # Nobody reads on, so neither do we.
            raise InvalidRequestError.of(self.violations)

    def present(self, name: str) -> bool:
        """Say whether a field is set to something other than null."""
        return self.fields.get(name) is not None

    def require(self, name: str, hint: str = "") -> bool:
        """Say whether a field is set; a violation, to which `hint` is added, where it is not."""
        if not self.present(name):
            self.refuse(name, f"is required{hint}", "missing_required_parameter")
            return False
        return True

    def limit(self, name: str, values: Sized, maximum: int | None, unit: str = "items") -> bool:
        """Say whether a field holds at most `maximum` values; a violation where it holds more."""
        if maximum is None or len(values) <= maximum:
            return True
        self.refuse(name, f"must contain at most {maximum} {unit}, got {len(values)}")
        return False

    def integer(self, name: str, minimum: int, maximum: int) -> int | None:
        """Read an integer in `minimum` to `maximum`, both included."""

        def complaint(value: int) -> str | None:
            if minimum <= value <= maximum:
                return None
            return _out_of_range(value, minimum, maximum)

        return self._read(name, "an integer", _as_integer, complaint)

    def number(
        self,
        name: str,
        minimum: float,
        maximum: float,
        *,
        above_minimum: bool = False,
        below_maximum: bool = False,
    ) -> float | None:
        """Read a number in `minimum` to `maximum`; the flags leave the bounds themselves out."""
        lower = "greater than" if above_minimum else "at least"
        upper = "less than" if below_maximum else "at most"

        def complaint(value: float) -> str | None:
            # The engine rounds, and would refuse the bound that it gets.
            rounded = _rounded(value)
            above = rounded > _rounded(minimum) if above_minimum else value >= minimum
            below = rounded < _rounded(maximum) if below_maximum else value <= maximum
            if above and below:
                return None
            return f"must be {lower} {minimum:g} and {upper} {maximum:g}, got {value:g}"

        return self._read(name, "a number", _as_number, complaint)

    def string(self, name: str) -> str | None:
        """Read any string."""
        return self._read(name, "a string", _instance_of(str))

    def binary(self, name: str) -> bytes | None:
        """Read bytes, which messages have and JSON has not."""
        return self._read(name, "bytes", _instance_of(bytes))

    def boolean(self, name: str) -> bool | None:
        """Read true or false."""
        return self._read(name, "true or false", _instance_of(bool))

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """Read one of some strings."""

        def complaint(value: str) -> str | None:
            return None if value in choices else none_of(value, choices)

        return self._read(name, "a string", _instance_of(str), complaint)

    def object(self, name: str, keys: Keys) -> Reader | None:
        """Return a reader of a nested object; what is not of its `keys` is unknown."""
        value = self.json_object(name)
        return None if value is None else self._inner(value, keys, name)

    def json_object(self, name: str) -> JsonObject | None:
        """Read an object of the caller's own as it is, keys in the caller's order."""
        return self._read(name, "an object", _instance_of(dict))

    def array(self, name: str) -> list[JsonValue] | None:
        """Read an array as it is."""
        return self._read(name, "an array", _instance_of(list))

    def integers(
        self, name: str, minimum: int, maximum: int, max_items: int | None = None
    ) -> tuple[int, ...]:
        """Read the integers in an array, each in `minimum` to `maximum`; none where absent."""
        values = self.array(name) or []
        if not self.limit(name, values, max_items):
            return ()
        return self.integers_in(values, FieldPath.of(name), minimum, maximum)

    def integers_in(
        self, values: list[JsonValue], field: FieldPath, minimum: int, maximum: int
    ) -> tuple[int, ...]:
        """Read the integers in the array at `field`, each in `minimum` to `maximum`."""
        integers: list[int] = []
        for index, value in enumerate(values):
            if not isinstance(value, int) or isinstance(value, bool):
                complaint = f"must be an integer, not {kind(value)}"
                self.refuse(field / index, complaint, "invalid_type")
            elif not minimum <= value <= maximum:
                self.refuse(field / index, _out_of_range(value, minimum, maximum))
            else:
                integers.append(value)
        return tuple(integers)

    def objects(self, name: str, keys: Keys, max_items: int | None = None) -> list[Reader]:
        """Return readers of the objects in an array; none where it is absent or wrong.

        What is not of their `keys` is unknown.
        """
        readers: list[Reader] = []
        values = self.array(name) or []
        if not self.limit(name, values, max_items):
            return readers
        for index, value in enumerate(values):
            if isinstance(value, dict):
                readers.append(self._inner(value, keys, name, index))
            else:
                complaint = f"must be an object, not {kind(value)}"
                self.refuse(FieldPath.of(name, index), complaint, "invalid_type")
        return readers

    def _inner(self, fields: JsonObject, keys: Keys, *steps: str | int) -> Reader:
        path = FieldPath(self._path.steps + steps)
        self.unknown += [path / name for name in unknown_keys(fields, keys)]
        return Reader(fields, self.violations, path, self.unknown, self.limits)

    def _read(
        self,
        name: str,
        expected: str,
        convert: Callable[[JsonValue], T | None],
        complaint: Callable[[T], str | None] | None = None,
    ) -> T | None:
        raw = self.fields.get(name)
        if raw is None:
            return None
        value = convert(raw)
        if value is None:
            self.refuse(name, f"must be {expected}, not {kind(raw)}", "invalid_type")
            return None
        problem = complaint(value) if complaint else None
        if problem:
            self.refuse(name, problem)
            return None
        return value


def _rounded(value: float) -> float:
    """Return the nearest number of 32 bits."""
    try:
        rounded: float = FLOAT32.unpack(FLOAT32.pack(value))[0]
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return rounded


def _out_of_range(value: int, minimum: int, maximum: int) -> str:
    return f"must be between {minimum} and {maximum}, got {shortened(str(value))}"


def _as_integer(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _as_number(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        # Out of any bounds, as infinity is.
        return math.inf if value > 0 else -math.inf


def _instance_of(expected: type[T]) -> Callable[[JsonValue], T | None]:
    return lambda value: value if isinstance(value, expected) else None


def none_of(value: str, choices: Collection[str]) -> str:
    """Say that a string is none of those that it may be."""
    known = ", ".join(f"'{choice}'" for choice in choices)
    return f"must be one of {known}, got {shortened(repr(value))}"


def kind(value: JsonValue) -> str:
    """Say in words what a value is."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
    return "an object"
