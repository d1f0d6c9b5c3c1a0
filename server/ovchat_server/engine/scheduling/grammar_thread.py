"""Compiles grammars in a thread, so that no step has to."""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

# Steps have precedence where there are fewer cores than threads.
NICENESS = 10


class Compiler(Protocol):
    """Compiles grammars and keeps them; see engine.genai.grammar_compiler.GrammarCompiler."""

    @property
    def full(self) -> bool:
        """Whether compiled grammars hold as much memory as they may."""
        ...

    def compile(self, grammar: str) -> None:
        """Compile a grammar; raise where it does not compile."""
        ...

    def clear(self) -> None:
        """Forget all grammars. Neither a compile nor a step may be under way."""
        ...


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar that was compiled, or could not be.

    Attributes:
        error: Why it did not compile; "" where it did.
    """

    grammar: str
    error: str = ""


class GrammarThread:
    """Compiles one grammar after the other, and pauses when their memory is used up."""

    def __init__(self, compiler: Compiler, wake: Callable[[], None]) -> None:
        """Start the thread.

        Args:
            compiler: Is used by the thread, and by `clear` while that pauses.
            wake: Called in the thread when a grammar is compiled, and when the thread pauses.
        """
        self._compiler = compiler
        self._wake = wake
        self._queued: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Compiled] = queue.SimpleQueue()
        self._has_room = threading.Event()
        self._has_room.set()
        threading.Thread(target=self._run, name="grammars", daemon=True).start()

    @property
    def full(self) -> bool:
        """Whether the thread pauses until `clear` is called."""
        return not self._has_room.is_set()

    def start(self, grammar: str) -> None:
        """Queue a grammar to be compiled; `take` returns it when that is done."""
        self._queued.put(grammar)

    def take(self) -> list[Compiled]:
        """Return what was compiled since the last call."""
        return [self._done.get_nowait() for _ in range(self._done.qsize())]

    def clear(self) -> None:
        """Forget all compiled grammars, and go on with those that are queued."""
        self._compiler.clear()
        self._has_room.set()

    def _run(self) -> None:
        # For this thread, and for those that the compiler starts from it.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while True:
            grammar = self._queued.get()
            # Before a grammar, not after: each can be used before it is forgotten.
            if self._compiler.full:
                self._has_room.clear()
                self._wake()
                self._has_room.wait()
            try:
                self._compiler.compile(grammar)
            except Exception as error:  # noqa: BLE001  whatever it is, its requests must end
                self._done.put(Compiled(grammar, f"{type(error).__name__}: {error}"))
            else:
                self._done.put(Compiled(grammar))
            self._wake()
