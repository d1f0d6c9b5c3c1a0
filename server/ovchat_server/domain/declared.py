"""The base of declared types: what they have in common, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ovchat_server.domain.faults import (
    fault,
    none_of_types,
    refuse_all,
    wrong_kind,
)
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.known_keys import ANY_KEYS
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.reader import none_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.reader import Reader


class Declared(BaseModel):
    """An object of a request.

    Attributes:
        ignored: The keys that change nothing, besides its fields; ANY_KEYS for all.
    """

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)
    ignored: ClassVar[frozenset[str] | None] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:  # noqa: ANN401
        """Take null as absent (OpenAI's SDKs send nulls for what was not set)."""
        if not isinstance(value, dict) or None not in value.values():
            return value
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {name: item for name, item in value.items() if item is not None or name not in known}


class Hosted(Declared):
    """Something of the tools of OpenAI's or Anthropic's service, which do not run here."""

    ignored: ClassVar[frozenset[str] | None] = ANY_KEYS


T = TypeVar("T", bound=Declared)


def read_declared(reader: Reader, declared: type[T]) -> T | None:
    """Read the fields of a type; None if something is wrong with them, noted in the reader.

    Keys inside of them that are unknown are noted in the reader, too.
    """
    names = declared.model_fields.keys() & reader.fields.keys()
    fields = {name: reader.fields[name] for name in names}
    try:
        read = declared.model_validate(fields, context=reader.limits)
    except ValidationError as error:
        refuse_all(reader, error)
        return None
    reader.unknown += _unknown(read)
    return read


def _unknown(value: object) -> Iterator[FieldPath]:
    """Yield the paths of unknown keys in a value."""
    inside: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, list):
        inside = enumerate(value)
    elif isinstance(value, Declared):
        inside = vars(value).items()
        if value.ignored is not ANY_KEYS:
            extra = value.model_extra or {}
            yield from (FieldPath.of(name) for name in extra if name not in value.ignored)
    for step, item in inside:
        if isinstance(item, list | Declared):
            yield from (FieldPath.of(step) / path for path in _unknown(item))


def by_type(
    types: Mapping[str, type[Declared]],
    *,
    refused: Mapping[str, str] | None = None,
    others: Mapping[str, type[Declared]] | type[Declared] | None = None,
    words: Collection[str] = (),
) -> PlainValidator:
    """Return the validator of an object that is of one of some types, by its key `type`.

    Args:
        types: The types by the values of the key.
        refused: What is wrong with other values that are known, completing "<field>.type ...".
        others: The types of values that errors need not list; or the type of all other values.
        words: Strings that may stand instead of an object.
    """

    def read(value: JsonValue, info: ValidationInfo) -> Declared | str:
        if words and isinstance(value, str):
            if value not in words:
                raise fault(none_of(value, words))
            return value
        if not isinstance(value, dict):
            raise wrong_kind("a string or an object" if words else "an object", value)
        given = value.get("type")
        found = None
        if isinstance(given, str):
            if refused and given in refused:
                raise fault(refused[given], "unsupported_value", FieldPath.of("type"))
            other = others if isinstance(others, type) else (others or {}).get(given)
            found = types.get(given, other)
        if found is None:
            raise none_of_types(given, types)
        return found.model_validate(value, context=info.context)

    return PlainValidator(read)


def or_text(kind: str) -> BeforeValidator:
    """Return the validator of an array that may be a string: its one item, a text of a type."""

    def listed(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return [{"type": kind, "text": value}]
        if not isinstance(value, list):
            raise wrong_kind("a string or an array", value)
        return value

    return BeforeValidator(listed)


def at_most(limit: str, count: Callable[[list[JsonValue]], int] = len) -> BeforeValidator:
    """Return the validator of an array that is bounded by one of the `Limits`.

    Args:
        limit: Its name.
        count: How many items an array has.
    """

    def check(value: JsonValue, info: ValidationInfo) -> JsonValue:
        maximum: int = getattr(info.context or DEFAULT_LIMITS, limit)
        if isinstance(value, list) and (items := count(value)) > maximum:
            raise fault(f"must contain at most {maximum} items, got {items}")
        return value

    return BeforeValidator(check)
