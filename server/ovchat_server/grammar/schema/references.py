"""References within a schema."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ovchat_server.grammar.schema.errors import SchemaError
from ovchat_server.grammar.schema.pointers import child, steps

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject, JsonValue

UNKNOWN = "uses a $ref to no schema of its own"


class References:
    """Finds what a $ref refers to."""

    def __init__(self, root: JsonValue) -> None:
        """Find parts of `root`."""
        self._root = root

    def target(self, reference: str) -> JsonValue:
        """Return the schema that a $ref refers to.

        Raises:
            SchemaError: It refers to nothing in this schema.
        """
        base, _, fragment = reference.partition("#")
        pointer = unquote(fragment)
        found = self._called("$id", base) if base else self._root
        if pointer and not pointer.startswith("/"):
            return self._called("$anchor", pointer)
        try:
            for name in steps(pointer):
                found = child(found, name)
        except KeyError as error:
            raise SchemaError(UNKNOWN) from error
        return found

    def _called(self, key: str, name: str) -> JsonValue:
        """Return the one schema that has a name."""
        found = self._names.get((key, name), [])
        if len(found) != 1:
            raise SchemaError(UNKNOWN)
        return found[0]

    @cached_property
    def _names(self) -> dict[tuple[str, str], list[JsonObject]]:
        """The schemas that have names, by those."""
        names: dict[tuple[str, str], list[JsonObject]] = {}
        waiting = [self._root]
        while waiting:
            match waiting.pop():
                case dict(schema):
                    for key in ("$id", "$anchor"):
                        if isinstance(name := schema.get(key), str):
                            names.setdefault((key, name), []).append(schema)
                    waiting += schema.values()
                case list(schemas):
                    waiting += schemas
        return names
