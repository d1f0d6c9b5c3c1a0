"""Compiles grammars in a thread, so that no step has to."""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The steps go first where there are fewer cores than threads.
NICENESS = 10


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar that is done with.

    Attributes:
        error: Why it did not compile; "" where it did.
    """

    grammar: str
    error: str = ""


class GrammarThread:
    """Compiles one grammar after the other; see engine.scheduling.grammar_gate.Compiler."""

    def __init__(self, compile_: Callable[[str], None], wake: Callable[[], None]) -> None:
        """Start the thread.

        Args:
            compile_: Compiles a grammar; raises where it does not compile.
            wake: Called in the thread when one is done.
        """
        self._compile = compile_
        self._wake = wake
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Compiled] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="grammars", daemon=True).start()

    def start(self, grammar: str) -> None:
        """Compile a grammar; `take` tells when that is done."""
        self._asked.put(grammar)

    def take(self) -> list[Compiled]:
        """What was done since the last time."""
        return [self._done.get_nowait() for _ in range(self._done.qsize())]

    def _run(self) -> None:
        # Of this thread alone, and of those that the compiler starts from it.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            grammar = self._asked.get()
            try:
                self._compile(grammar)
            except Exception as error:  # noqa: BLE001  whatever it is, its requests must end
                self._done.put(Compiled(grammar, f"{type(error).__name__}: {error}"))
            else:
                self._done.put(Compiled(grammar))
            self._wake()
