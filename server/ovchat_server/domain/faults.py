"""What declared types find wrong, in the words and with the paths of the other requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.reader import kind, none_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader

EXPECTED: Mapping[str, str] = {
    "string_type": "a string",
    "literal_error": "a string",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
}


def fault(
    complaint: str, code: str = "invalid_value", field: FieldPath = FieldPath()
) -> PydanticCustomError:
    """Return what a validator of ours is to raise.

    Args:
        complaint: Completes "<field> ...", without the full stop.
        code: OpenAI's word for the kind of fault.
        field: The path of the field inside of what is validated.
    """
    told = {"complaint": complaint, "code": code, "field": field}
    return PydanticCustomError("fault", "{complaint}", told)


def wrong_kind(expected: str, value: JsonValue) -> PydanticCustomError:
    """Return the fault of a value that is not of the `expected` kind."""
    return fault(f"must be {expected}, not {kind(value)}", "invalid_type")


def none_of_types(value: JsonValue, types: Collection[str]) -> PydanticCustomError:
    """Return the fault of a `type`, or of its absence, that is none of some."""
    field = FieldPath.of("type")
    if value is None:
        return fault("is required", "missing_required_parameter", field)
    if not isinstance(value, str):
        return fault(f"must be a string, not {kind(value)}", "invalid_type", field)
    return fault(none_of(value, types), field=field)


def refuse_all(reader: Reader, error: ValidationError) -> None:
    """Note in the reader whatever declared types found wrong."""
    for found in error.errors(include_url=False):
        _refuse(reader, found)


def _refuse(reader: Reader, found: ErrorDetails) -> None:
    path, context, value = FieldPath(found["loc"]), found.get("ctx", {}), found["input"]
    match found["type"]:
        case "fault":
            reader.refuse(path / context["field"], context["complaint"], context["code"])
        case "missing":
            reader.refuse(path, "is required", "missing_required_parameter")
        case "literal_error" if isinstance(value, str):
            allowed = context["expected"].replace(" or ", ", ").replace("'", "")
            reader.refuse(path, none_of(value, allowed.split(", ")))
        case known if known in EXPECTED:
            complaint = f"must be {EXPECTED[known]}, not {kind(value)}"
            reader.refuse(path, complaint, "invalid_type")
        case _:
            # Half of a surrogate pair, which JSON can spell.
            reader.refuse(path, "must be valid Unicode")
