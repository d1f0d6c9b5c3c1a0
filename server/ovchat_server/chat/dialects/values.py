"""Values that dialects write as text without types, which come from the tool's schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.json_text import parse, quoted
from ovchat_server.chat.dialects.python_calls import read_python
from ovchat_server.chat.dialects.source import DamagedError, Source, Steps, finished

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator

    from ovchat_server.chat.dialects.markup import Call
    from ovchat_server.domain.chat import Tool
    from ovchat_server.domain.json_value import JsonObject, JsonValue

# What a schema that refers to itself may cost.
MOST_SCHEMAS = 100
STRING = "string"
KINDS: dict[type, frozenset[str]] = {
    type(None): frozenset({"null"}),
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"integer", "number"}),
    str: frozenset({STRING}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
}


class Arguments:
    """Writes a call's arguments, one after the other."""

    def __init__(self, call: Call, tools: Iterable[Tool], name: str) -> None:
        """Write the arguments of `call`, which is one of the tool `name`."""
        schemas = [tool.parameters for tool in tools if tool.name == name]
        self._schema: JsonObject = (schemas[0] if schemas else None) or {}
        self._call = call
        self._separator = "{"

    def write(self, key: str, text: str) -> None:
        """Write the next argument from its text.

        Raises:
            DamagedError: The text cannot be encoded.
        """
        value = typed(text, types_of(self._schema, key), unique=not self._call.enforced)
        self._call.write(f"{self._separator}{quoted(key)}: {value}")
        self._separator = ", "

    def end(self) -> None:
        """End the arguments.

        Raises:
            DamagedError: An argument was written twice.
        """
        self._call.write("{}" if self._separator == "{" else "}")
        self._call.end()


def read_parameters(
    source: Source,
    arguments: Arguments,
    tags: tuple[str, str, str],
    key: re.Pattern[str],
    value: Callable[[], Steps[str]],
) -> Steps[None]:
    """Read the arguments of a call that stand in tags, up to its end.

    Args:
        source: Stands behind the call's name.
        arguments: Where they are written.
        tags: What stands before a name, what behind it, and what ends the call.
        key: A repeated set of the characters of a name.
        value: Reads a value, and what ends it.

    Raises:
        DamagedError: They are none.
    """
    opening, named, ending = tags
    while True:
        yield from source.skip_space()
        tag = yield from source.first_of(opening, ending)
        if tag == ending:
            break
        if tag is None:
            raise DamagedError
        name = yield from source.run(key)
        yield from source.literal(named)
        arguments.write(name, (yield from value()))
    arguments.end()


def typed(text: str, types: frozenset[str], *, unique: bool = True) -> str:
    """Convert a value that is written as text to JSON.

    Args:
        text: The value as the model wrote it: JSON, Python, or a string without quotes.
        types: The JSON Schema types that it may have; if empty, it may have any.
        unique: Whether an object with a key twice is read as a string.
    """
    if types == {STRING}:
        return quoted(text)
    value = text.strip()
    for as_json in (str, _python):
        try:
            written = as_json(value)
            kinds = _kinds(parse(written, unique=unique))
        except DamagedError:
            continue
        # Quotes around a string that needs none are the model's own.
        if STRING not in kinds and (kinds & types or not types):
            return written
    return quoted(text)


def _python(text: str) -> str:
    return finished(read_python, text)


def _kinds(value: JsonValue) -> frozenset[str]:
    """Return the JSON Schema types of a value."""
    if isinstance(value, float) and not value.is_integer():
        return frozenset({"number"})
    return KINDS[type(value)]


def types_of(schema: JsonObject, key: str | None) -> frozenset[str]:
    """Return the types that a schema allows for its property `key`; empty if it does not say.

    Args:
        schema: The schema of a tool's arguments.
        key: The property, or None for one that the schema does not name.
    """
    types: set[str] = set()
    for whole in _parts(schema, schema):
        for named in _property(whole, key):
            types |= _types(named, schema)
    return frozenset(types)


def _property(schema: JsonObject, key: str | None) -> Iterator[JsonValue]:
    properties = schema.get("properties")
    if key is not None and isinstance(properties, dict) and key in properties:
        yield properties[key]
        return
    patterns = schema.get("patternProperties")
    yield from patterns.values() if isinstance(patterns, dict) else ()
    yield schema.get("additionalProperties")


def _types(schema: JsonValue, root: JsonObject) -> set[str]:
    types: set[str] = set()
    for part in _parts(schema, root):
        match part:
            case {"type": str(name)}:
                types.add(name)
            case {"type": [*names]}:
                types.update(name for name in names if isinstance(name, str))
            case {"const": constant}:
                types |= _kinds(constant)
            case {"enum": [*constants]}:
                types.update(*map(_kinds, constants))
            case {"properties": _} | {"patternProperties": _} | {"additionalProperties": _}:
                types.add("object")
            case {"items": _} | {"prefixItems": _}:
                types.add("array")
    return types


def _parts(schema: JsonValue | None, root: JsonObject) -> Iterator[JsonObject]:
    """Yield a schema and its alternatives, following references."""
    left = [schema]
    for _ in range(MOST_SCHEMAS):
        if not left:
            return
        part = left.pop()
        if not isinstance(part, dict):
            continue
        yield part
        for key in ("anyOf", "oneOf", "allOf"):
            alternatives = part.get(key)
            left += alternatives if isinstance(alternatives, list) else []
        reference = part.get("$ref")
        if isinstance(reference, str):
            left.append(_referred(reference, root))


def _referred(reference: str, root: JsonObject) -> JsonValue:
    """Return the schema that a reference such as `#/$defs/x` refers to."""
    value: JsonValue = root
    for name in reference.removeprefix("#/").split("/"):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_of(text: str) -> str:
    """Remove the line breaks around a value on lines of its own."""
    return text.removeprefix("\n").removesuffix("\n")
