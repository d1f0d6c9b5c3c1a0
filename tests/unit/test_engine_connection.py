"""The server's end of an engine process: what it sends, and when."""

from __future__ import annotations

import socket
from typing import Any

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.client.connection import EngineConnection
from ovchat_server.engine.client.in_flight_requests import InFlightRequests
from ovchat_server.engine.contract.frames import FrameReader, encode
from ovchat_server.engine.contract.generation_messages import (
    GenerationLimits,
    SequenceOutput,
    SequenceRequest,
    generation_decoder,
)
from ovchat_server.engine.contract.messages import NO_CAPABILITIES, Cancel, Ready, Start


class ExitedProcess:
    """Ends as soon as somebody waits for it."""

    pid = 0

    async def wait(self) -> int:
        return 0


async def test_a_process_that_loads_is_sent_nothing_that_it_would_owe_an_answer_to() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003  the standard library's signature
    process: Any = ExitedProcess()
    sent: list[Start[SequenceRequest] | Cancel] = []
    in_flight: InFlightRequests[SequenceRequest, SequenceOutput] = InFlightRequests(
        sent.append, 8, 60.0, lambda: None
    )
    connection = EngineConnection(process, ours, generation_decoder(), in_flight)
    with theirs:
        # Of a request that the process before this one worked on.
        connection.send(Cancel(1))
        theirs.sendall(encode(Ready(GenerationLimits(8, (8,)), EngineLoad(), NO_CAPABILITIES)))
        await connection.ready()
        connection.send(Cancel(2))
        frames = FrameReader().feed(theirs.recv(1000))
        assert frames == FrameReader().feed(encode(Cancel(2)))
        await connection.close()
