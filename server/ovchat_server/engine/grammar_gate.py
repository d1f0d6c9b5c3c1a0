"""Sequences that wait for their grammar, before the scheduler sees them."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ovchat_server.engine.compiler import Compiled
    from ovchat_server.engine.messages import Add


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

    def add(self, request: Add) -> None:
        """Take a sequence."""
        ...

    def cancel(self, identifier: int) -> None:
        """Give a sequence up. One that is not here is no error."""
        ...

    def refuse(self, identifier: int) -> None:
        """Tell that a sequence will not run."""
        ...


class GrammarGate:
    """Lets a sequence pass when its grammars are compiled: others step on meanwhile."""

    def __init__(self, compiler: Compiler, admission: Admission) -> None:
        """Compile with `compiler`, pass on to `admission`."""
        self._compiler = compiler
        self._admission = admission
        # Digests: a grammar may be as long as a request.
        self._compiled: set[bytes] = set()
        self._waiting: dict[str, list[Add]] = {}

    def add(self, request: Add) -> None:
        """Take a sequence."""
        missing = [item for item in request.grammars if _digest(item) not in self._compiled]
        if not missing:
            self._admission.add(request)
            return
        for grammar in missing:
            if grammar not in self._waiting:
                self._compiler.start(grammar)
                self._waiting[grammar] = []
        self._waiting[missing[0]].append(request)

    def cancel(self, identifier: int) -> None:
        """Give a sequence up, wherever it is; its grammar is compiled all the same."""
        for waiting in self._waiting.values():
            waiting[:] = [request for request in waiting if request.id != identifier]
        self._admission.cancel(identifier)

    def open(self) -> None:
        """Let those pass whose grammars are compiled by now."""
        for compiled in self._compiler.take():
            if not compiled.error:
                self._compiled.add(_digest(compiled.grammar))
            for request in self._waiting.pop(compiled.grammar, []):
                if compiled.error:
                    # It was checked before it came here.
                    sys.stderr.write(f"a grammar did not compile: {compiled.error}\n")
                    self._admission.refuse(request.id)
                else:
                    self.add(request)


def _digest(grammar: str) -> bytes:
    return hashlib.sha256(grammar.encode()).digest()
