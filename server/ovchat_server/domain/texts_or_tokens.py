"""OpenAI's union of a text, tokens, or a list of either."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.logits_request import MAX_TOKEN_ID

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader

TextOrTokens: TypeAlias = "str | tuple[int, ...]"


def read_texts_or_tokens(
    reader: Reader, name: str, max_items: int, unit: str
) -> dict[FieldPath, TextOrTokens]:
    """Read a field that is set, each text and list of tokens by its path; none may be empty.

    Args:
        reader: The request.
        name: The field's name.
        max_items: How many there may be.
        unit: What they are called in the plural.
    """
    value = reader.fields[name]
    if isinstance(value, list) and value and _is_integer(value[0]):
        return {FieldPath.of(name): reader.integers(name, 0, MAX_TOKEN_ID)}
    if isinstance(value, list):
        if not value:
            reader.refuse(name, "must not be empty")
        if not reader.limit(name, value, max_items, unit):
            return {}
        named = {FieldPath.of(name, index): item for index, item in enumerate(value)}
        return {field: _read_item(reader, field, item) for field, item in named.items()}
    field = FieldPath.of(name)
    if not isinstance(value, str):
        reader.refuse(field, "must be a string, token ids, or an array of either", "invalid_type")
        return {}
    return {field: _read_item(reader, field, value)}


def _read_item(reader: Reader, field: FieldPath, value: JsonValue) -> TextOrTokens:
    if value in ("", []):
        reader.refuse(field, "must not be empty")
    elif isinstance(value, str):
        return value
    elif isinstance(value, list):
        return reader.integers_in(value, field, 0, MAX_TOKEN_ID)
    else:
        reader.refuse(field, "must be a string or an array of token ids", "invalid_type")
    return ""


def _is_integer(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
