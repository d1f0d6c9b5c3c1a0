"""Grammars of schemas, each written once while it is kept."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from ovchat_server.grammar.relaxation import Relaxation
from ovchat_server.grammar.schema.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.grammar.relaxation import Write

# Who writes, the digest of the schema, and whether it may be relaxed.
_Key: TypeAlias = "tuple[Callable[..., str], bytes, bool]"

MAX_BYTES: Final = 64 << 20
# Of an entry beside its text: the key, its digest, and their places in the dictionary.
ENTRY_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A grammar, and what of its schema it leaves out.

    Attributes:
        left_out: JSON pointers into the schema.
    """

    grammar: str
    left_out: tuple[str, ...] = ()


class GrammarCache:
    """Grammars by the schema and the notation they are of; the longest unused are forgotten.

    It may be used in several threads. Two that want the same at once may both write it.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """Keep grammars of at most so many bytes together."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, Relaxed | SchemaError] = OrderedDict()
        self.size = 0

    def grammar(self, write: Callable[[JsonValue], str], schema: JsonValue) -> str:
        """Return what `write` makes of a schema.

        Args:
            write: Writes in a notation: `json_grammar`, or the `grammar` of an ArgumentNotation.
            schema: What is to be followed. The order of its keys counts.

        Raises:
            SchemaError: It cannot be enforced.
        """
        key = (write, _digest(schema), False)
        return self._found(key, lambda: Relaxed(write(schema))).grammar

    def relaxed(self, write: Write, schema: JsonValue) -> Relaxed:
        """Return what `write` makes of a schema without what of it cannot be enforced.

        Raises:
            SchemaError: Nothing of it can be: it is too large.
        """
        try:
            return Relaxed(self.grammar(write, schema))
        except SchemaError:
            key = (write, _digest(schema), True)
            return self._found(key, lambda: _relaxed(write, schema))

    def _found(self, key: _Key, make: Callable[[], Relaxed]) -> Relaxed:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = _made(make)
            self._keep(key, found)
        if isinstance(found, SchemaError):
            raise SchemaError(*found.args)
        return found

    def _keep(self, key: _Key, found: Relaxed | SchemaError) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self.size += _bytes(found)
            while self.size > self._max_bytes:
                _, forgotten = self._kept.popitem(last=False)
                self.size -= _bytes(forgotten)


def _digest(schema: JsonValue) -> bytes:
    return hashlib.sha256(msgspec.json.encode(schema)).digest()


def _relaxed(write: Write, schema: JsonValue) -> Relaxed:
    relaxation = Relaxation(schema)
    return Relaxed(write(schema, relaxation), relaxation.places.left_out())


def _made(make: Callable[[], Relaxed]) -> Relaxed | SchemaError:
    try:
        return make()
    except SchemaError as error:
        # Without its traceback, which would keep all that led to it.
        return SchemaError(*error.args)


def _bytes(found: Relaxed | SchemaError) -> int:
    if isinstance(found, SchemaError):
        return ENTRY_BYTES + sys.getsizeof(str(found))
    return ENTRY_BYTES + sum(map(sys.getsizeof, (found.grammar, *found.left_out)))
