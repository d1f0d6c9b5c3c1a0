"""Reading whether the model is to reason, and what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.generation_request import MAX_UINT32

if TYPE_CHECKING:
    from ovchat_server.domain.reader import Reader

ENABLED, ADAPTIVE = "enabled", "adaptive"
SHOWN = "summarized"
# With `updates`, which Claude Code asks for, what Anthropic's models say between calls is shown as
# thinking. Here it is text.
HIDDEN = ("omitted", "updates")
THINKING_KEYS = frozenset({"type", "display", "block_binding"})
KINDS = {
    ENABLED: THINKING_KEYS | {"budget_tokens"},
    ADAPTIVE: THINKING_KEYS,
    "disabled": frozenset({"type"}),
}


@dataclass(frozen=True, slots=True)
class ThinkingConfig:
    """How the model is to reason.

    Attributes:
        enabled: Whether it is to; None: nothing is said.
        budget: The maximum number of tokens; None for any.
        shown: Whether the text is returned.
    """

    enabled: bool | None = None
    budget: int | None = None
    shown: bool = True


def read_thinking(reader: Reader) -> ThinkingConfig:
    """Read `thinking`; what is wrong is noted in the reader."""
    given = reader.object("thinking", KINDS)
    if given is None or not given.require("type"):
        return ThinkingConfig()
    kind = given.choice("type", KINDS)
    budget = None
    if kind == ENABLED and given.require("budget_tokens"):
        # Fewer than Anthropic's models need are enough for small ones.
        budget = given.integer("budget_tokens", 1, MAX_UINT32)
    shown = given.choice("display", (SHOWN, *HIDDEN)) not in HIDDEN
    return ThinkingConfig(kind in (ENABLED, ADAPTIVE), budget, shown)
