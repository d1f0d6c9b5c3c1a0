"""What the server says, checked once more before it reaches what steps for everybody.

The server checks requests before it sends them. Should it ever be wrong, one request fails, not
the engine with all that it runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import msgspec

from ovchat_server.engine.contract.generation_messages import generation_wire
from ovchat_server.engine.contract.messages import Start

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import SequenceOutput, SequenceRequest
    from ovchat_server.engine.contract.messages import Report


class Gate(Protocol):
    """Where sequences go from here."""

    def add(self, request: SequenceRequest) -> None:
        """Take a sequence."""
        ...

    def cancel(self, identifier: int) -> None:
        """Give a sequence up. One that is not here is no error."""
        ...


class Room(Protocol):
    """What knows how much fits: the scheduler."""

    def search_length(self, width: int) -> int:
        """Most tokens of prompt and answer for each of `width` beams."""
        ...

    def refuse(self, identifier: int, reason: str) -> None:
        """Tell that a sequence will not run, and why."""
        ...


class Intake:
    """Reads commands; ignores what is none, and refuses what cannot run."""

    def __init__(self, gate: Gate, room: Room) -> None:
        """Pass on to `gate` what `room` can hold."""
        self._gate = gate
        self._room = room
        self._live: set[int] = set()
        self._wire = generation_wire()

    def take(self, frame: bytes) -> None:
        """Do what a frame says."""
        try:
            command = self._wire.decode_command(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            sys.stderr.write(f"a frame is no command: {error}\n")
            return
        if isinstance(command, Start):
            for request in command.requests:
                self._add(request)
        else:
            self._live.discard(command.id)
            self._gate.cancel(command.id)

    def note(self, report: Report[SequenceOutput]) -> None:
        """Learn which sequences have ended."""
        self._live.difference_update(output.id for output in report.outputs if output.finish)

    def _add(self, request: SequenceRequest) -> None:
        if request.id in self._live:
            # Not refused: that would end the one that has the id.
            sys.stderr.write(f"the id {request.id} is in use already\n")
            return
        self._live.add(request.id)
        if self._fits(request):
            self._gate.add(request)
        else:
            self._room.refuse(request.id, "it cannot fit")

    def _fits(self, request: SequenceRequest) -> bool:
        generation = request.generation
        if not generation.prompt or generation.max_tokens < 1 or generation.beams < 1:
            return False
        tokens = len(generation.prompt) + generation.max_tokens
        return tokens <= self._room.search_length(generation.beams)
