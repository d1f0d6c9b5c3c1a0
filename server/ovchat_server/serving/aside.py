"""Work that would hold others up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


async def aside(work: Callable[[], Result], *, long: bool = True) -> Result:
    """What `work` gives; where it may take `long`, it is done in a thread."""
    return await asyncio.to_thread(work) if long else work()
