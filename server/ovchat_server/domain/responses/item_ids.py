"""Ids of the items of an output, which tell where they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Mapping

RESPONSE = "resp_"
ITEM = re.compile(r"[a-z]+_([0-9a-f]+)_([0-9]{1,9})")


# What OpenAI's ids begin with, by the types of items.
PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}


def item_id(kind: str, response_id: str, index: int) -> str:
    """Return the id of an item.

    Args:
        kind: Its type.
        response_id: The id of the response.
        index: The item's place in the output.
    """
    return f"{PREFIXES[kind]}_{response_id.removeprefix(RESPONSE)}_{index}"


def new_item_id(kind: str) -> str:
    """Return an id for an item of any type that came without one."""
    return f"{PREFIXES.get(kind, 'item')}_{uuid4().hex}"


def place_of(item: str) -> tuple[str, int] | None:
    """Return the id of the response that an item is of, and its place; None if it is no id."""
    if (found := ITEM.fullmatch(item)) is None:
        return None
    return f"{RESPONSE}{found[1]}", int(found[2])
