"""Places in a schema, and at which of them something was left out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from ovchat_server.grammar.schema.pointers import child, escaped, steps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.json_value import JsonValue

# Places that are told of.
MAX_TOLD = 1000


@dataclass(frozen=True, slots=True)
class Location:
    """Where a schema stands.

    Attributes:
        pointer: A JSON pointer into the whole schema.
        own: It stands there itself; otherwise it was put together from what stands there.
    """

    pointer: str
    own: bool = True

    def of(self, *keys: str | int) -> str:
        """Return the JSON pointer to something inside of it."""
        return "/".join([self.pointer, *map(escaped, keys)]) if self.own else self.pointer


class Places:
    """The places in one schema.

    Attributes:
        count: How often something was left out.
    """

    def __init__(self, root: JsonValue) -> None:
        """Know those in `root`."""
        self.count = 0
        self._root = root
        self._pointers = {id(item): pointer for pointer, item in _objects(root)}
        self._left_out: dict[str, None] = {}
        self._alike: dict[str, dict[str, None]] = {}

    def location(self, schema: JsonValue, pointer: str) -> Location:
        """Return where a schema stands; what was put together is known by `pointer`."""
        known = self._pointers.get(id(schema))
        return Location(pointer, not isinstance(schema, dict)) if known is None else Location(known)

    def leave_out(self, pointer: str) -> None:
        """Note that what a JSON pointer leads to was left out."""
        self.count += 1
        self._left_out[self._standing(pointer)] = None

    def alike(self, one: Location, other: Location) -> None:
        """Note that what is left out of a schema is left out of another one as well."""
        # Not of one in itself, which would be told of for ever.
        if one.own and other.own and not f"{other.pointer}/".startswith(f"{one.pointer}/"):
            self._alike.setdefault(one.pointer, {})[other.pointer] = None

    def left_out(self) -> tuple[str, ...]:
        """Return JSON pointers to what was left out, wherever it stands."""
        told = dict(self._left_out)
        waiting = [*told]
        while waiting and len(told) < MAX_TOLD:
            pointer = waiting.pop(0)
            for around in accumulate(pointer.split("/"), "{}/{}".format):
                for other in self._alike.get(around, ()):
                    again = self._standing(other + pointer[len(around) :])
                    if again not in told:
                        told[again] = None
                        waiting.append(again)
        return tuple(told)

    def _standing(self, pointer: str) -> str:
        """Return a JSON pointer, or that to what is around it if nothing stands there.

        What is left of a schema has parts that were put together.
        """
        found = self._root
        around = ""
        for name in steps(pointer):
            try:
                found = child(found, name)
            except KeyError:
                return around
            around = f"{around}/{escaped(name)}"
        return pointer


def _objects(root: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    """Yield the objects in a value, each with the JSON pointer to it."""
    waiting = [("", root)]
    while waiting:
        pointer, item = waiting.pop()
        children: Iterable[tuple[str | int, JsonValue]] = ()
        if isinstance(item, dict):
            yield pointer, item
            children = item.items()
        elif isinstance(item, list):
            children = enumerate(item)
        waiting += [(f"{pointer}/{escaped(key)}", child) for key, child in children]
