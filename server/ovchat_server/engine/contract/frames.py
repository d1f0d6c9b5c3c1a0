"""Frames on the socket between the server and a child process: msgpack behind its length."""

from __future__ import annotations

import struct

import msgspec

LENGTH = struct.Struct(">I")


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that are complete now that `data` has arrived."""
        self._buffer += data
        frames = []
        while len(self._buffer) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._buffer)
            end = LENGTH.size + size
            if len(self._buffer) < end:
                break
            frames.append(bytes(self._buffer[LENGTH.size : end]))
            del self._buffer[:end]
        return frames


def encode(message: msgspec.Struct) -> bytes:
    """Encode a message as one frame."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body
