"""The caller of the current request, by whom waiting requests take turns."""

from __future__ import annotations

from contextvars import ContextVar

from ovchat_server.engine.contract.engine import Caller

# Set by the doors for the task of each call, and read where the engine is asked.
client: ContextVar[str] = ContextVar("client", default="")
# The digest of the API key that the call was made with, to whom belongs what it leaves behind; ""
# where the server has no keys. Never an address, which is nobody's for long.
api_key: ContextVar[str] = ContextVar("api_key", default="")


def current_caller(priority: int) -> Caller:
    """Return who makes the current request, with the priority that it asks for."""
    return Caller(client.get(), priority)
