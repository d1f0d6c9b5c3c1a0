"""JSON inside JSON: vLLM takes schemas and structural tags as objects and as their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.api.errors import InvalidRequestError
from ovchat_server.api.field_path import FieldPath

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonObject, JsonValue

FIELDS = ("guided_json", "structural_tag")
NESTED_FIELDS = ("json", "structural_tag")


def with_parsed_texts(fields: JsonObject) -> JsonObject:
    """A request's fields with what they hold as text parsed, keys in the text's order.

    Raises:
        InvalidRequestError: A text is no JSON.
    """
    parsed = _parsed(fields, FIELDS, FieldPath())
    outputs = parsed.get("structured_outputs")
    if isinstance(outputs, dict):
        parsed["structured_outputs"] = _parsed(
            outputs, NESTED_FIELDS, FieldPath.of("structured_outputs")
        )
    return parsed


def _parsed(fields: JsonObject, names: tuple[str, ...], path: FieldPath) -> JsonObject:
    return {
        key: _value(value, path / key) if key in names and isinstance(value, str) else value
        for key, value in fields.items()
    }


def _value(text: str, path: FieldPath) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        complaint = f"must hold an object, or JSON as text: {error}."
        raise InvalidRequestError.about(path, complaint, "invalid_json") from error
    return value
