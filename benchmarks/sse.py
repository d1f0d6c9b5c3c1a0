"""Server-sent events out of the bytes of an HTTP/1.1 answer, each with the time it came at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LINE = b"\r\n"
# Nothing but an empty last chunk begins a line of its own with it and ends so: a header's value
# may end with "0", but does not stand alone.
LAST_CHUNK = b"\r\n0\r\n\r\n"


class AnswerError(Exception):
    """An answer that is no stream of events: its status and what it says."""


def head_of(data: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers by their names in small letters, and what follows.

    Raises:
        AnswerError: It is no HTTP.
    """
    head, separator, rest = data.partition(LINE + LINE)
    status, *lines = head.split(LINE)
    if not separator or not status.startswith(b"HTTP/1.1 "):
        raise AnswerError(f"no HTTP: {data[:200]!r}")
    pairs = (line.split(b":", 1) for line in lines)
    return int(status[9:12]), {name.lower(): value.strip() for name, value in pairs}, rest


def is_complete(data: bytes) -> bool:
    """Whether an answer ends here."""
    if data.endswith(LAST_CHUNK):
        return True
    head, separator, body = data.partition(LINE + LINE)
    _, found, length = head.lower().partition(b"content-length:")
    return bool(separator and found) and len(body) >= int(length.partition(LINE)[0])


def timed_events(parts: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """The data of each event, and when its last byte came.

    Args:
        parts: The answer as it came, in pieces of any size.

    Raises:
        AnswerError: Its status is not 200, or it is not chunked.
    """
    raw, body = b"", b""
    in_body = False
    for time, data in parts:
        raw += data
        if not in_body:
            if LINE + LINE not in raw:
                continue
            status, headers, raw = head_of(raw)
            if status != 200:
                raise AnswerError(f"status {status}: {raw[:500].decode(errors='replace')}")
            if headers.get(b"transfer-encoding") != b"chunked":
                raise AnswerError("the answer is not chunked")
            in_body = True
        content, raw = _chunks(raw)
        body += content
        *events, body = body.split(b"\n\n")
        for event in events:
            # Some servers send a comment when they have nothing to say for long.
            if not event.startswith(b":"):
                yield time, event.removeprefix(b"data: ")


def _chunks(raw: bytes) -> tuple[bytes, bytes]:
    """The content of whole chunks, and the rest."""
    content = []
    position = 0
    while (end := raw.find(LINE, position)) >= 0:
        length = int(raw[position:end], 16)
        start = end + len(LINE)
        if len(raw) < start + length + len(LINE):
            break
        content.append(raw[start : start + length])
        position = start + length + len(LINE)
    return b"".join(content), raw[position:]
