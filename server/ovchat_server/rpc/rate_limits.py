"""The limits of each key, on the RPCs that give a model work."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ovchat_server.rpc.probes import Exempt, exempt
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ovchat_server.rpc.middleware import Context, Middleware
    from ovchat_server.serving.rate_limits import RateLimits

# What only looks, or deletes, costs nothing.
FREE: Final = ("Get", "List", "Delete")


def rate_limits(limits: RateLimits) -> Middleware:
    """Return middleware that refuses requests beyond the limits of their caller's key."""

    @contextlib.asynccontextmanager
    async def limited(context: Context, method: str) -> AsyncIterator[None]:
        if exempt(method, Exempt.KEY) or method.rpartition("/")[2].startswith(FREE):
            yield
            return
        record = current_record()
        with limits.admitted(record):
            yield
        # Errors have trailing metadata of their own.
        if record.rate_limits:
            context.set_trailing_metadata((*context.trailing_metadata(), *record.rate_limits))

    return limited
