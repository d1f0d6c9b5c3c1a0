"""An engine of any kind, as the rest of the server sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.messages import NO_CAPABILITIES, Capabilities

if TYPE_CHECKING:
    from ovchat_server.domain.models import EngineLoad, ModelState


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks an engine for something.

    Attributes:
        client: A name for them: clients take turns. "": nobody in particular.
        priority: Lower goes first (vLLM), among the requests of the same client.
        highest_priority: The lowest number that counts among those of different clients.
    """

    client: str = ""
    priority: int = 0
    highest_priority: int = 0

    @property
    def shared_priority(self) -> int:
        """The priority that counts among the requests of different clients."""
        return max(self.priority, self.highest_priority)


ANONYMOUS = Caller()


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How an engine is doing.

    Attributes:
        reason: Why it does not answer, for an operator; "" where it does.
        load: None while there is no engine.
        capabilities: As the engine stated them when it was loaded last.
    """

    state: ModelState
    reason: str = ""
    load: EngineLoad | None = None
    capabilities: Capabilities = NO_CAPABILITIES
