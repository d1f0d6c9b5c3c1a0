"""Server-sent events, in whatever pieces they come."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.providers import events
from ovchat_server.providers.events import EventParser
from ovchat_server.providers.kind import BadAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterable

STREAM = (
    b": a comment\r\n\r\nevent: message_start\r\ndata: {}\r\n\r\n\n\ndata:no space\n\n"
    b"id: 7\ndata: two\ndata:  lines\n\nretry: 3\n\ndata: [DONE]\n\ndata: never ended\n"
)
DATA = [b"{}", b"no space", b"two\n lines", b"[DONE]"]


def read(pieces: Iterable[bytes]) -> list[bytes]:
    parser = EventParser()
    return [data for piece in pieces for data in parser.feed(piece)]


@given(st.sets(st.integers(0, len(STREAM)), max_size=20))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: set[int]) -> None:
    ends = sorted({0, *cuts, len(STREAM)})
    pieces = [STREAM[start:end] for start, end in itertools.pairwise(ends)]
    assert read(pieces) == DATA


@pytest.mark.parametrize("line", [b"data: " + b"a" * 50, b"data: " + b"a" * 5 + b"\n"])
def test_an_event_without_end_is_refused(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 1000)
    with pytest.raises(BadAnswerError, match="more than 1000 bytes"):
        read([line] * 1001)
