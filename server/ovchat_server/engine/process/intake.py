"""Commands as they arrive, checked before they reach what steps for everybody.

The server checks requests before it sends them. Should it ever be wrong, one request fails, not
the engine with all that it runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Generic

import msgspec

from ovchat_server.engine.contract.messages import LimitsT, OutputT, RequestT, Start

if TYPE_CHECKING:
    from ovchat_server.engine.contract.messages import Report
    from ovchat_server.engine.contract.worker import Worker


class Intake(Generic[RequestT, OutputT, LimitsT]):
    """Passes commands on; ignores what is none, and requests whose ids are in use."""

    def __init__(self, worker: Worker[RequestT, OutputT, LimitsT]) -> None:
        """Pass on to `worker`."""
        self._worker = worker
        self._in_flight: set[int] = set()

    def take(self, frame: bytes) -> None:
        """Do what a frame says."""
        try:
            command = self._worker.decoder.decode_command(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            sys.stderr.write(f"a frame is no command: {error}\n")
            return
        if isinstance(command, Start):
            for request in command.requests:
                self._add(request)
        else:
            self._in_flight.discard(command.id)
            self._worker.cancel(command.id)

    def note(self, report: Report[OutputT]) -> None:
        """Learn which requests have ended."""
        self._in_flight.difference_update(item.id for item in report.outputs if item.finish)

    def _add(self, request: RequestT) -> None:
        if request.id in self._in_flight:
            # Not refused: that would end the one that has the id.
            sys.stderr.write(f"the id {request.id} is in use already\n")
            return
        self._in_flight.add(request.id)
        self._worker.add(request)
