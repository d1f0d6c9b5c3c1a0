"""A child's end of the socket."""

from __future__ import annotations

import socket

import pytest

from ovchat_server.engine.contract.frames import encode
from ovchat_server.engine.process.channel import Channel
from tests.unit.scheduler_tools import sequence


@pytest.fixture
def ends() -> tuple[socket.socket, Channel]:
    ours, theirs = socket.socketpair()
    return ours, Channel(theirs)


def test_waking_a_process_that_never_waits_does_not_hold_anybody_up(
    ends: tuple[socket.socket, Channel],
) -> None:
    _, channel = ends
    for _ in range(100_000):
        channel.wake()
    assert channel.receive(wait=True) == []


def test_a_frame_ends_the_wait(ends: tuple[socket.socket, Channel]) -> None:
    ours, channel = ends
    frame = encode(sequence(1, 2, 3))
    ours.sendall(frame)
    assert len(channel.receive(wait=True)) == 1
