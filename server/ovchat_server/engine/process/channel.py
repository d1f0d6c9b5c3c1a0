"""What child processes have in common: their end of the socket, and their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys

from ovchat_server.engine.contract.frames import FrameReader

PR_SET_PDEATHSIG = 1
READ_SIZE = 1 << 20


class Channel:
    """A child's end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        """Speak over `connection`."""
        self._connection = connection
        self._reader = FrameReader()
        self._wake_up, self._wake = socket.socketpair()
        for end in (self._wake_up, self._wake):
            end.setblocking(False)  # noqa: FBT003  the standard library's signature
        self.closed = False

    @classmethod
    def inherited(cls) -> Channel:
        """Open the socket whose number is the process's first argument."""
        return cls(socket.socket(fileno=int(sys.argv[1])))

    def receive(self, *, wait: bool) -> list[bytes]:
        """Receive the frames that have arrived.

        With `wait` at least one, unless the server is gone or `wake` was called.
        """
        frames: list[bytes] = []
        while not frames and not self.closed:
            if wait and self._was_woken():
                return []
            try:
                data = self._connection.recv(READ_SIZE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            except ConnectionError:
                data = b""
            self.closed = not data
            frames = self._reader.feed(data)
            if not wait:
                return frames
        return frames

    def send(self, frame: bytes) -> None:
        """Send a frame. A slow server holds the process back here."""
        try:
            self._connection.sendall(frame)
        except ConnectionError:
            self.closed = True

    def wake(self) -> None:
        """End a `receive` that waits, from any thread."""
        # Full: who waits finds enough of them.
        with contextlib.suppress(BlockingIOError):
            self._wake.send(b"\0")

    def _was_woken(self) -> bool:
        """Wait for a frame or a wake-up; whether it was the latter."""
        ready, _, _ = select.select([self._connection, self._wake_up], [], [])
        if self._wake_up not in ready:
            return False
        self._wake_up.recv(READ_SIZE)
        return True


def leave_ending_to_the_server() -> None:
    """Have this process end when the server closes the socket or dies, and not before."""
    # Ctrl-C goes to every process of the terminal, a service manager's SIGTERM to every one of
    # the service; the server decides when its children end, after the answers under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = os.getppid()
    # The closed socket says so too, but not to a thread that hangs inside a step.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It died before the kernel was told.
        sys.exit(1)
