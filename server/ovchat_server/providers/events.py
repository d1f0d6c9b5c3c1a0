"""Reading server-sent events as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

# A token with many alternatives takes some KiB, the arguments of a call that come at once more.
MAX_EVENT_BYTES = 8 << 20


async def events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each event of a stream, whatever pieces it comes in.

    Names and ids of events, comments and empty events are skipped. What follows the last complete
    event is dropped, as the standard asks for.

    Raises:
        BadAnswerError: An event is larger than MAX_EVENT_BYTES.
    """
    parser = EventParser()
    async for piece in pieces:
        for data in parser.feed(piece):
            yield data


class EventParser:
    """Cuts a stream of bytes into events (WHATWG HTML, 9.2.6)."""

    def __init__(self) -> None:
        """Begin without bytes."""
        # Of the line that has begun.
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of the events that a piece completes.

        Raises:
            BadAnswerError: An event is too large.
        """
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest.clear()
            self._rest_size = 0
            for line in lines:
                # The standard lets a lone carriage return end a line, too, which nobody sends.
                yield from self._line(line.removesuffix(b"\r"))
        self._rest.append(rest)
        self._rest_size += len(rest)
        if self._size + self._rest_size > MAX_EVENT_BYTES:
            raise BadAnswerError(f"an event has more than {MAX_EVENT_BYTES} bytes")

    def _line(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data, self._size = [], 0
        elif line.startswith(b"data:"):
            data = line.removeprefix(b"data:").removeprefix(b" ")
            self._data.append(data)
            self._size += len(data)
