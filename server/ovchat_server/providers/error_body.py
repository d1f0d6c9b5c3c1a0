"""Reading the errors of servers, which have many forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.kind import WireError

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject, JsonValue

MAX_BYTES = 500


def read_error(body: bytes) -> WireError:
    """Read the body of an answer with an error status; it may be anything."""
    try:
        value: JsonValue = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return WireError(cut(body.decode(errors="replace")))
    return _error(value)


def _error(value: JsonValue) -> WireError:
    match value:
        case [dict(first), *_]:
            # Google's.
            return _error(first)
        case {"error": dict(told)}:
            return _described(told)
        case {"error": str(message)} | {"detail": str(message)} | str(message):
            return WireError(cut(message))
        case {"detail": [{"msg": str(message), "loc": [_, *inside]}, *_]}:
            # FastAPI's: where, and in which part of the request.
            path = FieldPath(tuple(step for step in inside if isinstance(step, str | int)))
            return WireError(cut(f"{path}: {message}"), _path(str(path)))
        case dict(told) if "message" in told:
            # Older vLLM's.
            return _described(told)
    return WireError()


def _described(told: JsonObject) -> WireError:
    return WireError(_text(told.get("message")), _path(told.get("param")), _text(told.get("code")))


def _path(value: JsonValue) -> FieldPath | None:
    path = FieldPath.read(_text(value))
    return path if path.steps else None


def _text(value: JsonValue) -> str:
    # Codes that are numbers only repeat the status.
    return cut(value) if isinstance(value, str) else ""


def cut(text: str) -> str:
    """Return what a provider says, no longer than an error of ours may tell."""
    text = text.strip()
    # In bytes: all errors of ours have to fit into gRPC's trailers, whatever they are escaped to.
    data = text.encode(errors="replace")
    return text if len(data) <= MAX_BYTES else data[:MAX_BYTES].decode(errors="ignore") + "..."
