"""Grammars that are compiled, and sequences that wait for theirs before the scheduler sees them."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceRequest
    from ovchat_server.engine.scheduling.grammar_thread import Compiled


class Compiler(Protocol):
    """Compiles grammars beside the steps, for good: what is compiled stays so."""

    def start(self, grammar: str) -> None:
        """Compile a grammar; `take` tells when that is done."""
        ...

    def take(self) -> list[Compiled]:
        """What was done since the last time."""
        ...


class Admission(Protocol):
    """Where sequences go from here: the scheduler."""

    def add(self, request: SequenceRequest) -> None:
        """Take a sequence."""
        ...

    def cancel(self, identifier: int) -> None:
        """Give a sequence up. One that is not here is no error."""
        ...

    def refuse(self, identifier: int, reason: str) -> None:
        """Tell that a sequence will not run, and why."""
        ...


class Grammars:
    """Knows what is compiled, and has compiled what somebody asks for."""

    def __init__(self, compiler: Compiler) -> None:
        """Nothing is compiled."""
        self._compiler = compiler
        # By digests: a grammar may be as long as a request.
        self._known: dict[bytes, bool | None] = {}

    def compiled(self, grammar: str) -> bool | None:
        """Whether a grammar is compiled; None: it does not compile.

        One that nobody asked for before is, from now on.
        """
        key = _digest(grammar)
        if key not in self._known:
            self._known[key] = False
            self._compiler.start(grammar)
        return self._known[key]

    def take(self) -> list[str]:
        """What was done with since the last time."""
        done = self._compiler.take()
        for item in done:
            self._known[_digest(item.grammar)] = None if item.error else True
            if item.error:
                # It was checked before it came here.
                sys.stderr.write(f"a grammar did not compile: {item.error}\n")
        return [item.grammar for item in done]


class GrammarGate:
    """Lets a sequence pass when its grammar is compiled: others step on meanwhile."""

    def __init__(self, grammars: Grammars, admission: Admission) -> None:
        """Pass on to `admission`."""
        self._grammars = grammars
        self._admission = admission
        self._waiting: dict[str, list[SequenceRequest]] = {}

    def add(self, request: SequenceRequest) -> None:
        """Take a sequence."""
        grammar = request.generation.grammar
        compiled = self._grammars.compiled(grammar) if grammar else True
        if compiled:
            self._admission.add(request)
        elif compiled is None:
            self._admission.refuse(request.id, "its grammar did not compile")
        else:
            self._waiting.setdefault(grammar, []).append(request)

    def cancel(self, identifier: int) -> None:
        """Give a sequence up, wherever it is; its grammar is compiled all the same."""
        for waiting in self._waiting.values():
            waiting[:] = [request for request in waiting if request.id != identifier]
        self._admission.cancel(identifier)

    def open(self) -> None:
        """Let those pass whose grammars are compiled by now."""
        for grammar in self._grammars.take():
            for request in self._waiting.pop(grammar, []):
                self.add(request)


def _digest(grammar: str) -> bytes:
    return hashlib.sha256(grammar.encode()).digest()
