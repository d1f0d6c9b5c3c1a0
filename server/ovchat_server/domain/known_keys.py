"""The keys that objects of a request may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.json_value import JsonObject

# The keys of an object, or those of each `type` that it may be of.
Keys: TypeAlias = Collection[str] | Mapping[str, Collection[str]] | None
# Of an object whose keys are the caller's own.
ANY_KEYS: Final = None


def unknown_keys(fields: JsonObject, keys: Keys) -> Iterator[str]:
    """Yield the keys of an object that are not among its `keys`."""
    by_type = keys if isinstance(keys, Mapping) else {}
    # A type that is not among them is refused by who reads it.
    own = keys.get(str(fields.get("type"))) if isinstance(keys, Mapping) else keys
    if own is None:
        return
    for name, value in fields.items():
        # Null is absent: what is of another type may be that.
        absent = value is None and any(name in others for others in by_type.values())
        if name not in own and not absent:
            yield name
