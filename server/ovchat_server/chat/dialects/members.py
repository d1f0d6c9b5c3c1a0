"""What follows the properties of an object's schema: those that are required, and others."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.ebnf import NOTHING, any_of, repeated
from ovchat_server.chat.dialects.json_patterns import PatternError
from ovchat_server.chat.dialects.notation import UnwritableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.api.json_value import JsonObject, JsonValue

    Value = Callable[[JsonValue, str | None], str]


@dataclass(frozen=True, slots=True)
class Keys:
    """How keys are written, with what is between them and their values.

    Attributes:
        named: One key.
        matching: Keys that match a pattern.
        free: Any key.
        comma: Between two members; "": nothing.
        ordered: They come in the order of their names, not in the schema's.
    """

    named: Callable[[str], str]
    matching: Callable[[str], str]
    free: str
    comma: str
    ordered: bool = False


def members(schema: JsonObject, keys: Keys, value: Value) -> str:
    """The members of the objects that follow a schema.

    Where it names properties, there are no others. Those that are not required may be left out;
    they stand where the schema has them.

    Args:
        schema: Of type object.
        keys: How to write.
        value: Writes the values that follow a schema, as which property; None: as any other.

    Raises:
        UnwritableError: A member that is required cannot be written.
    """
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        return _joined(_bounded(_declared(schema, properties, keys, value), schema), keys.comma)
    options: list[str] = []
    patterns = schema.get("patternProperties")
    for regex, child in patterns.items() if isinstance(patterns, dict) else ():
        try:
            options.append(f"{keys.matching(regex)} {value(child, None)}")
        except (UnwritableError, PatternError):
            continue
    others = schema.get("additionalProperties", not patterns)
    if others is not False:
        with contextlib.suppress(UnwritableError):
            options.append(f"{keys.free} {value(others, None)}")
    fewest, most = _counts(schema)
    if not options and fewest:
        raise UnwritableError
    if not options or most == 0:
        return NOTHING
    first = any_of(options)
    rest = repeated(f"{keys.comma} {first}", max(0, fewest - 1), None if most is None else most - 1)
    return f"{first} {rest}" if fewest else f"({first} {rest})?"


Members = list[tuple[str, bool]]


def _declared(schema: JsonObject, properties: JsonObject, keys: Keys, value: Value) -> Members:
    """Each as it is written, and whether it is required."""
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    names = sorted(properties, key=str.lower) if keys.ordered else [*properties]
    found: Members = []
    for name in names:
        try:
            found.append((f"{keys.named(name)} {value(properties[name], name)}", name in required))
        except UnwritableError:
            if name in required:
                raise
    return found


def _counts(schema: JsonObject) -> tuple[int, int | None]:
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    return (
        int(fewest) if isinstance(fewest, int | float) else 0,
        int(most) if isinstance(most, int | float) else None,
    )


def _bounded(found: Members, schema: JsonObject) -> Members:
    """Those of which as many are written as may be: the first of the others count as required.

    Raises:
        UnwritableError: There are too few, or too many are required.
    """
    fewest, most = _counts(schema)
    count = sum(required for _, required in found)
    most = len(found) if most is None else most
    if count > most or len(found) < fewest:
        raise UnwritableError
    kept: Members = []
    for text, required in found:
        if not required and count < fewest:
            count, must = count + 1, True
        else:
            must = required
        kept.append((text, must))
    optional = most - count
    bounded: Members = []
    for text, must in kept:
        if not must:
            optional -= 1
        if must or optional >= 0:
            bounded.append((text, must))
    return bounded


def _joined(found: Members, comma: str) -> str:
    if not found:
        return NOTHING
    if not comma:
        return " ".join(text if must else f"({text})?" for text, must in found)
    joined = _some(found, comma)
    return joined if any(must for _, must in found) else f"({joined})?"


def _some(found: Members, comma: str) -> str:
    """At least one."""
    first = next((at for at, (_, must) in enumerate(found) if must), None)
    if first is not None:
        before = [f"({text} {comma})?" for text, _ in found[:first]]
        return " ".join([*before, found[first][0], _more(found[first + 1 :], comma)]).strip()
    if len(found) == 1:
        return found[0][0]
    # Halves, or it would grow with the square of their number.
    half = len(found) // 2
    left = f"{_some(found[:half], comma)} {_more(found[half:], comma)}"
    return any_of([left, _some(found[half:], comma)])


def _more(found: Members, comma: str) -> str:
    """Behind another."""
    return " ".join(f"{comma} {text}" if must else f"({comma} {text})?" for text, must in found)
