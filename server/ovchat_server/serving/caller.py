"""The caller of the current request, by whom waiting requests take turns."""

from __future__ import annotations

from ovchat_server.engine.contract.engine import Caller
from ovchat_server.serving.record import current_record


def current_caller(priority: int) -> Caller:
    """Return who makes the current request, with the priority that it asks for."""
    caller = current_record().caller
    return Caller(caller.client, priority, caller.rules.priority)
