"""How much memory a value holds."""

from __future__ import annotations

import dataclasses
import sys


def memory_size(value: object) -> int:
    """Return the bytes of a value and of all that it holds, each object counted once.

    Looks into dataclasses and what JSON has. It takes a second or more for many million values.
    """
    seen: set[int] = set()
    left = [value]
    size = 0
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        size += sys.getsizeof(item)
        if isinstance(item, dict):
            left += item.keys()
            left += item.values()
        elif isinstance(item, list | tuple):
            left += item
        elif dataclasses.is_dataclass(item):
            left += (getattr(item, field.name) for field in dataclasses.fields(item))
    return size
