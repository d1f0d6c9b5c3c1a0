"""Which grammars are compiled, and the sequences that wait for theirs outside the scheduler."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.grammar_thread import GrammarThread
    from ovchat_server.engine.scheduling.scheduler import Scheduler


class Grammars:
    """Keeps track of compiled grammars, and compiles those that are asked for."""

    def __init__(self, compiler: GrammarThread) -> None:
        """Begin with none."""
        self._compiler = compiler
        # By digest, as a grammar may be as long as a request. False while it is being compiled.
        self._known: dict[bytes, bool | None] = {}
        self._draining = False

    @property
    def full(self) -> bool:
        """Whether their memory is used up: nothing more is compiled before `make_room`."""
        return self._compiler.full

    def compiled(self, grammar: str) -> bool | None:
        """Return whether a grammar is compiled; None if it does not compile.

        One that is not becomes so after a while.
        """
        key = _digest(grammar)
        if key not in self._known or (self._draining and self._known[key]):
            self._known[key] = False
            self._compiler.start(grammar)
        return self._known[key]

    def take(self) -> list[str]:
        """Return the grammars that were compiled, or failed to, since the last call."""
        done = self._compiler.take()
        for item in done:
            self._known[_digest(item.grammar)] = None if item.error else True
            if item.error:
                # Unexpected: it was checked before.
                sys.stderr.write(f"a grammar did not compile: {item.error}\n")
        return [item.grammar for item in done]

    def make_room(self, *, in_use: bool) -> None:
        """Forget all grammars.

        Args:
            in_use: A sequence has still to look its grammar up. Then nothing is forgotten yet, but
                all grammars count as not compiled, so that no other sequence begins.
        """
        self._draining = in_use
        if not in_use:
            self._compiler.clear()
            self._known = {key: known for key, known in self._known.items() if known is False}


class GrammarGate:
    """Holds sequences back until their grammars are compiled, while others step."""

    def __init__(self, grammars: Grammars, scheduler: Scheduler, wake: Callable[[], None]) -> None:
        """Pass sequences on to `scheduler`; `wake` has `open` called once more, step or not."""
        self._grammars = grammars
        self._scheduler = scheduler
        self._wake = wake
        self._waiting: dict[str, list[SequenceRequest]] = {}

    def add(self, request: SequenceRequest) -> None:
        """Add a sequence to the scheduler, now or once its grammar is compiled."""
        grammar = request.generation.grammar
        compiled = self._grammars.compiled(grammar) if grammar else True
        if compiled:
            self._scheduler.add(request)
        elif compiled is None:
            self._scheduler.refuse(request.id, "its grammar did not compile")
        else:
            self._waiting.setdefault(grammar, []).append(request)

    def cancel(self, identifier: int) -> None:
        """Cancel a sequence, wherever it is; its grammar is still compiled."""
        for waiting in self._waiting.values():
            waiting[:] = [request for request in waiting if request.id != identifier]
        self._scheduler.cancel(identifier)

    def open(self) -> None:
        """Pass on sequences whose grammars are compiled by now. Call it between two steps."""
        # Asked first: nothing more is compiled then, and `take` returns all that was.
        full = self._grammars.full
        compiled = self._grammars.take()
        for grammar in compiled:
            for request in self._waiting.pop(grammar, []):
                self.add(request)
        if not full:
            return
        # A step in which they may begin comes before their grammars are forgotten.
        may_begin = bool(compiled) and self._scheduler.busy
        in_use = self._scheduler.needs_grammar
        if not may_begin:
            self._grammars.make_room(in_use=in_use)
        if may_begin or in_use:
            # Not cleared yet. All may end in the next step, after which nobody else would ask.
            self._wake()


def _digest(grammar: str) -> bytes:
    return hashlib.sha256(grammar.encode()).digest()
