"""The caller of the current request, by whom waiting requests take turns."""

from __future__ import annotations

from contextvars import ContextVar

from ovchat_server.engine.contract.engine import Caller

# Set by the doors for the task of each call, and read where the engine is asked.
client: ContextVar[str] = ContextVar("client", default="")


def current_caller(priority: int) -> Caller:
    """Return who makes the current request, with the priority that it asks for."""
    return Caller(client.get(), priority)
