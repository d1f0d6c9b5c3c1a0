"""Who is told what engines do, to count it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol

from ovchat_server.engine.contract.messages import OutputT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ovchat_server.engine.contract.messages import Report


@dataclass(frozen=True, slots=True)
class EngineUsage:
    """How full an engine is now.

    Attributes:
        running: Requests that take part in its steps.
        waiting: Those that do not yet, or not any more: preempted ones, and all while there is no
            process.
        used_kv_blocks: Blocks of the KV cache that are taken.
        total_kv_blocks: All of them; 0 until it was loaded for the first time, and so the next.
        kv_block_size: How many tokens a block holds.
    """

    running: int = 0
    waiting: int = 0
    used_kv_blocks: int = 0
    total_kv_blocks: int = 0
    kv_block_size: int = 0


class EngineObserver(Protocol[OutputT]):
    """Is told what the engine of one model does. Called in the event loop, so it must be quick."""

    def watch(self, usage: Callable[[], EngineUsage]) -> None:
        """Take what tells how full the engine is, whenever it is asked."""
        ...

    def stepped(self, report: Report[OutputT], gaps: Mapping[float, int]) -> None:
        """Note a report.

        Args:
            report: Of a step, or of commands that were taken without one.
            gaps: Seconds between two outputs of a request, the last of which is in the report, and
                of how many requests.
        """
        ...

    def prompt_read(self, tokens: int, cached: int | None) -> None:
        """Note that the prompt of a sequence was read.

        Args:
            tokens: Its length.
            cached: How many of them the prefix cache had; None: not known.
        """
        ...

    def restarted(self) -> None:
        """Note that the engine's process was lost, and another one is started."""
        ...

    def resumed(self, requests: int) -> None:
        """Note that another process goes on with requests of one that was lost."""
        ...


class Unobserved(Generic[OutputT]):
    """Nobody: an EngineObserver that counts nothing."""

    def watch(self, usage: Callable[[], EngineUsage]) -> None:
        """Do nothing; so the others."""

    def stepped(self, report: Report[OutputT], gaps: Mapping[float, int]) -> None:
        """See EngineObserver; so the others."""

    def prompt_read(self, tokens: int, cached: int | None) -> None:
        """See EngineObserver."""

    def restarted(self) -> None:
        """See EngineObserver."""

    def resumed(self, requests: int) -> None:
        """See EngineObserver."""
