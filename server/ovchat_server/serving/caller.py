"""Who asks, as far as it matters for taking turns."""

from __future__ import annotations

from contextvars import ContextVar

# Set by the doors for the task of each call, and read where the engine is asked.
client: ContextVar[str] = ContextVar("client", default="")
