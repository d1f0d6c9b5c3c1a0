"""The engine process: `python -m ovchat_server.engine.process FD`.

One thread: take commands, step, send what came of it. While there is nothing to do it
waits for a command. It ends when the server closes its end of the socket, so it cannot
outlive a server that goes away, however it goes.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys

from setproctitle import setproctitle

from ovchat_server.engine.messages import (
    Command,
    Event,
    Failed,
    FrameReader,
    Ready,
    Start,
    decode_command,
    decode_spec,
    encode,
)
from ovchat_server.engine.scheduler import Scheduler

PR_SET_PDEATHSIG = 1
READ_SIZE = 1 << 20
MAX_SEARCH_WIDTH = 32


class Channel:
    """The engine's end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        """Speak over `connection`."""
        self._connection = connection
        self._reader = FrameReader()
        self.closed = False

    def receive(self, *, wait: bool) -> list[bytes]:
        """The frames that are there; with `wait` at least one, unless the server is gone."""
        frames: list[bytes] = []
        while not frames and not self.closed:
            try:
                data = self._connection.recv(READ_SIZE, 0 if wait else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return []
            except ConnectionError:
                data = b""
            self.closed = not data
            frames = self._reader.feed(data)
            if not wait:
                return frames
        return frames

    def send(self, event: Event) -> None:
        """Send an event. A slow server holds the engine back here."""
        try:
            self._connection.sendall(encode(event))
        except ConnectionError:
            self.closed = True


def serve(channel: Channel, scheduler: Scheduler) -> None:
    """Run until the server is gone."""
    while True:
        frames = channel.receive(wait=not scheduler.busy)
        if channel.closed:
            return
        for frame in frames:
            _obey(scheduler, decode_command(frame))
        if scheduler.busy:
            channel.send(scheduler.step())


def _obey(scheduler: Scheduler, command: Command) -> None:
    if isinstance(command, Start):
        for request in command.requests:
            scheduler.add(request)
    else:
        scheduler.cancel(command.id)


def _end_with_parent() -> None:
    """Have the kernel end this process with its parent.

    The closed socket says so too, but not to a thread that hangs inside a step.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # It died before the kernel was told.
        sys.exit(1)


def main() -> int:
    """Load the model and serve it over the socket that was inherited."""
    # Ctrl-C goes to every process of the terminal, a service manager's SIGTERM to every one of
    # the service; the server decides when engines end, after the answers under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with_parent()
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    frames = channel.receive(wait=True)
    if not frames:
        return 1
    spec = decode_spec(frames[0])
    setproctitle(f"ovchat engine {spec.name}")
    try:
        # Seconds and a gigabyte, so not before the process has its name.
        from ovchat_server.engine.pipeline import GenaiPipeline  # noqa: PLC0415

        pipeline = GenaiPipeline(spec)
        scheduler = Scheduler(pipeline, pipeline.total_blocks, pipeline.block_size)
        context_length = min(spec.context_length, scheduler.context_length)
        search_lengths = tuple(
            min(spec.context_length, scheduler.search_length(width))
            for width in range(1, MAX_SEARCH_WIDTH + 1)
        )
        channel.send(Ready(context_length, search_lengths, scheduler.load()))
        serve(channel, scheduler)
    except Exception as error:  # noqa: BLE001  whatever it is, the server must learn of it
        channel.send(Failed(f"{type(error).__name__}: {error}"))
        return 1
    return 0


if __name__ == "__main__":
    # Unloading a model takes longer than the system needs to take everything back, and
    # genai complains of blocks that were still in use.
    code = main()
    sys.stdout.flush()
    os._exit(code)
