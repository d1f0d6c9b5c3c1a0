"""Compiles or follows one grammar after the other in a process, with a limited time for each."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.engine.client.grammar_child import GrammarChild, GrammarChildDiedError
from ovchat_server.engine.client.turns import Turns
from ovchat_server.engine.contract.grammar_messages import (
    SLOW_TO_FOLLOW,
    Checked,
    Compile,
    Follow,
    GrammarProcessSpec,
)

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_spec import GenerationSpec

DIED = "compiling it crashes the compiler"
# Seconds in which an answer is followed that takes none; what each token takes without its grammar,
# of a large vocabulary; and how many times as long all that may take while the engine is busy.
FOLLOW_TIMEOUT = 10.0
PLAIN_TOKEN = 0.005
BUSY = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a grammar cannot be served, "" if it can.

    Attributes:
        too_slow: That it took too long is all that is known.
    """

    reason: str
    too_slow: bool = False


class GrammarLane:
    """Those who wait for one process, and the process, which is replaced when it is ended.

    Attributes:
        turns: The turn of each who waits.
    """

    def __init__(self, spec: GenerationSpec, *, stays: bool, follows: bool = False) -> None:
        """Compile grammars for the model of `spec`; `start` starts the process.

        Args:
            spec: The model's.
            stays: Replace the process at once, so that the next grammar need not wait for it.
            follows: Whether `follow` is called.
        """
        self.turns: Turns[GrammarLane] = Turns(self)
        self._spec = spec
        self._stays = stays
        self._follows = follows
        self._starting: asyncio.Task[GrammarChild] | None = None

    def start(self) -> None:
        """Start the process unless it runs; return at once."""
        if self._starting is None:
            spec = self._spec
            followed_tokens = spec.context_length if self._follows else 0
            child = GrammarChild.start(GrammarProcessSpec(spec.name, spec.path, followed_tokens))
            self._starting = asyncio.create_task(child)
            self._starting.add_done_callback(retrieve)

    async def close(self) -> None:
        """End the process."""
        starting, self._starting = self._starting, None
        if starting is None:
            return
        starting.cancel()
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().close()

    async def compile(self, grammar: str) -> Verdict:
        """Compile a grammar; to be called in turn.

        Raises:
            UnavailableError: The process cannot be started.
        """
        timeout = self._spec.options.grammar_timeout
        late = f"it takes more than {timeout:g} seconds to compile"
        verdict = await self._ask(Compile(grammar), timeout, late)
        if verdict.reason == DIED:
            # Try once more: the process may have died of something else.
            verdict = await self._ask(Compile(grammar), timeout, late)
        return verdict

    async def follow(self, grammar: str, tokens: tuple[int, ...], mask_seconds: float) -> Verdict:
        """Follow a grammar, to see whether that is slow; one at a time.

        Args:
            grammar: Which compiles.
            tokens: Those of an answer so far.
            mask_seconds: How long it may take to find out which tokens it allows, for each.

        Raises:
            UnavailableError: The process cannot be started.
        """
        timeout = FOLLOW_TIMEOUT + BUSY * (mask_seconds + PLAIN_TOKEN) * len(tokens)
        return await self._ask(Follow(grammar, tokens, mask_seconds), timeout, SLOW_TO_FOLLOW)

    async def _ask(self, request: Compile | Follow, timeout: float, late: str) -> Verdict:
        """Return the verdict; `late` is that where none comes in time."""
        process = await self._process()
        checked, too_slow = Checked(DIED, last=True), False
        try:
            async with asyncio.timeout(timeout):
                checked = await process.ask(request)
        except TimeoutError:
            checked, too_slow = Checked(late, last=True), True
        except GrammarChildDiedError:
            name = self._spec.name
            logger.warning("%s: its grammar process died", name, extra={"model": name})
        finally:
            # On cancellation, too: nobody would read the verdict that is on its way.
            if checked.last:
                await self.close()
        if checked.last and self._stays:
            self.start()
        return Verdict(checked.reason, too_slow)

    async def _process(self) -> GrammarChild:
        self.start()
        assert self._starting is not None  # noqa: S101  start() did
        try:
            return await asyncio.shield(self._starting)
        except (OSError, GrammarChildDiedError, TimeoutError) as error:
            name = self._spec.name
            message = "%s: its grammar process cannot be started"
            logger.exception(message, name, extra={"model": name})
            self._starting = None
            message = "The answer's grammar cannot be checked at the moment. Try again shortly."
            raise UnavailableError(message, retry_after=1) from error


def retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve a task's exception, which asyncio logs otherwise if nobody waits for it."""
    if not task.cancelled():
        task.exception()
