"""Ids of the items of an output, which tell where they are."""

from __future__ import annotations

import re

RESPONSE = "resp_"
ITEM = re.compile(r"[a-z]+_([0-9a-f]+)_([0-9]{1,9})")


def item_id(prefix: str, response_id: str, index: int) -> str:
    """Return the id of an item.

    Args:
        prefix: What it begins with, by the item's type.
        response_id: The id of the response.
        index: The item's place in the output.
    """
    return f"{prefix}_{response_id.removeprefix(RESPONSE)}_{index}"


def place_of(item: str) -> tuple[str, int] | None:
    """Return the id of the response that an item is of, and its place; None if it is no id."""
    if (found := ITEM.fullmatch(item)) is None:
        return None
    return f"{RESPONSE}{found[1]}", int(found[2])
