"""Grammars of schemas, each written once while it is kept."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from ovchat_server.grammar.schema.shapes import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.api.json_value import JsonValue

MAX_BYTES: Final = 64 << 20
# Of an entry beside its text: the key, its digest, and their places in the dictionary.
ENTRY_BYTES: Final = 400


class GrammarCache:
    """Grammars by the schema and the notation they are of; the longest unused are forgotten.

    It may be used in several threads. Two that want the same at once may both write it.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        """Keep grammars of at most so many bytes together."""
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Callable[..., str], bytes], str | SchemaError] = OrderedDict()
        self.size = 0

    def grammar(self, write: Callable[[JsonValue], str], schema: JsonValue) -> str:
        """Return what `write` makes of a schema.

        Args:
            write: Writes in a notation: `json_grammar`, or the `grammar` of an ArgumentNotation.
            schema: What is to be followed. The order of its keys counts.

        Raises:
            SchemaError: It cannot be enforced.
        """
        key = (write, hashlib.sha256(msgspec.json.encode(schema)).digest())
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = _written(write, schema)
            self._keep(key, found)
        if isinstance(found, SchemaError):
            raise SchemaError(str(found))
        return found

    def _keep(self, key: tuple[Callable[..., str], bytes], found: str | SchemaError) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self.size += _bytes(found)
            while self.size > self._max_bytes:
                _, forgotten = self._kept.popitem(last=False)
                self.size -= _bytes(forgotten)


def _written(write: Callable[[JsonValue], str], schema: JsonValue) -> str | SchemaError:
    try:
        return write(schema)
    except SchemaError as error:
        # Without its traceback, which would keep all that led to it.
        return SchemaError(str(error))


def _bytes(found: str | SchemaError) -> int:
    return ENTRY_BYTES + sys.getsizeof(str(found))
