"""A child process that cannot outlive its parent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ovchat_server.launch import exec_child

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Program:
    """What to run.

    Attributes:
        command: The program and its arguments.
        ps_name: The name that ps shows. Not for Python, which finds its installation by it.
        text: The text on its standard input.
        processors: The processors that it may run on; if empty, those of this process.
    """

    command: Sequence[str]
    ps_name: str = ""
    text: str = ""
    processors: frozenset[int] = frozenset()

    def tied(self) -> tuple[str, ...]:
        """Return the command that runs it as a child that ends when this process does."""
        return (
            sys.executable,
            # Nothing of site-packages is needed, and importing it takes longer than the rest.
            "-IS",
            exec_child.__file__,
            str(os.getpid()),
            ",".join(map(str, self.processors)),
            self.ps_name,
            *self.command,
        )


class Child:
    """A running process and its process group.

    Leaving its context kills what is left of both.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        """Take over a process that leads its own group.

        Args:
            name: Names it in messages.
            process: The process.
        """
        self.name = name
        self._process = process
        self._closed = False

    @classmethod
    async def spawn(cls, name: str, program: Program) -> Self:
        """Start a program, which writes its output to where this process does."""
        # A file in memory: unlike a temporary one it is never left behind, and unlike a pipe
        # it takes any length at once.
        with os.fdopen(os.memfd_create("stdin"), "w+", encoding="utf-8") as stdin:
            stdin.write(program.text)
            stdin.seek(0)
            process = await asyncio.create_subprocess_exec(
                *program.tied(),
                stdin=stdin,
                # Out of the terminal's foreground group: Ctrl-C is for the parent alone, which
                # decides who ends first. In the same session, because the kernel schedules
                # sessions, not processes (autogroups): with one each, Envoy waited for seconds
                # for a processor that an engine kept busy (Linux 6.18).
                process_group=0,
            )
        return cls(name, process)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for its end and return the exit code, negative for a signal."""
        return await self._process.wait()

    async def terminate(self, timeout: float, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end by a signal, kill it after `timeout` seconds, and return the exit code."""
        if self.running:
            # The process alone: it knows in which order its own children should end.
            self._signal(number)
            with contextlib.suppress(TimeoutError):
                # Not wait_for, which may swallow a cancellation on Python 3.11.
                async with asyncio.timeout(timeout):
                    return await self.wait()
        return await self.close()

    def interrupt(self) -> None:
        """Ask it to end at once, whether or not it was asked to end before."""
        # Another signal than `terminate` sends: of two alike that are both on their way it
        # would see one.
        if self.running:
            self._signal(signal.SIGINT)

    async def close(self) -> int:
        """Kill it and its process group and return the exit code. May be called again."""
        # The group also when the process has ended: its own children may have stayed. Once
        # only: when all members are gone, the id may become another group's.
        if not self._closed:
            self._closed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        # Before its setpgid the group does not exist yet, and the process gets it by itself.
        if self.running:
            self._signal(signal.SIGKILL)
        return await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        # It may end at any moment before the loop hears of it.
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kill what is left of it."""
        await self.close()
