"""The value of a setting, read as its type; where it is wrong, in words what it may be."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from ovchat_server.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


HERE = Path()


def read_value(
    kind: Any,  # noqa: ANN401
    value: object,
    *,
    text: bool = False,
    folder: Path = HERE,
) -> Any:  # noqa: ANN401
    """Return a value as its type.

    Args:
        kind: The type, as msgspec takes it: with bounds, and perhaps a description.
        value: As it was given.
        text: It is text, of a flag or of the environment.
        folder: What a path is relative to.

    Raises:
        ValueError: It is not of that type: "must be ..., got ...".
    """

    def path(_kind: type, value: object) -> Path:
        if not isinstance(value, str) or not value:
            raise ValueError("no path")
        return folder / value

    with contextlib.suppress(msgspec.ValidationError):
        found = msgspec.convert(value, kind, strict=not text, dec_hook=path)
        if not isinstance(found, float) or math.isfinite(found):
            return found
    info = inspect.type_info(kind)
    raise wrong(_expected(info), value, _choices(info))


def wrong(expected: str, value: object, known: Iterable[str] = (), but: str = "") -> ValueError:
    """Return the error of a value: what it must be, what it is, and what may be meant."""
    meant = did_you_mean(value, known) if isinstance(value, str) else ""
    return ValueError(f"must be {expected}, got {shown(value)}{but}{meant}")


def shown(value: object) -> str:
    """Return a value as it is written in TOML, more or less."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _expected(info: inspect.Type) -> str:
    """Return in words what a value of a type is."""
    words = "a string"
    match info:
        case inspect.UnionType(types=types):
            # TOML has no null: what may be None may be left out.
            parts = [_expected(part) for part in types if not isinstance(part, inspect.NoneType)]
            words = " or ".join(parts)
        case inspect.Metadata(extra_json_schema={"description": str(description)}):
            words = description
        case inspect.IntType():
            words = "a whole number" + _bounds(info)
        case inspect.FloatType():
            words = "a number" + _bounds(info)
        case inspect.BoolType():
            words = "true or false"
        case inspect.LiteralType() | inspect.EnumType():
            words = "one of " + ", ".join(_choices(info))
        case inspect.VarTupleType():
            words = "an array of strings"
        case inspect.CustomType():
            words = "a path"
    return words


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    if info.gt is not None:
        return f" above {info.gt}"
    if info.ge is not None and info.le is not None:
        return f" from {info.ge} to {info.le}"
    return "" if info.ge is None else f" of at least {info.ge}"


def _choices(info: inspect.Type) -> list[str]:
    match info:
        case inspect.UnionType(types=types):
            return [choice for part in types for choice in _choices(part)]
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.EnumType(cls=cls):
            return [str(item.value) for item in cls]
        case _:
            return []
