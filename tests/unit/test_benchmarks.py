"""What figures are made of, and how a stream is read: a wrong one would measure something else."""

from __future__ import annotations

import pytest

from benchmarks.figures import Spread, differences, figures_of, quantile, ratios
from benchmarks.plan import Trace
from benchmarks.sse import AnswerError, is_complete, timed_events

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def trace(*times: float, label: str = "", start: float = 0.0, tokens: int = 0) -> Trace:
    return Trace(
        label=label,
        start=start,
        end=times[-1],
        arrivals={0: list(times)},
        prompt_tokens=1,
        completion_tokens=tokens or len(times),
    )


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


def test_quantile_is_the_nearest_rank() -> None:
    values = [float(value) for value in range(100, 0, -1)]

    assert quantile(values, 0.99) == 99
    assert quantile(values, 0.5) == 50
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3


def test_figures_of_requests_side_by_side() -> None:
    figures = figures_of([trace(1, 2, 4), trace(1.5, 2.5, 3, start=0.5)])

    assert figures["tokens/s"] == pytest.approx(6 / 4)
    assert figures["TTFT ms"] == pytest.approx(1000)
    assert figures["whole ms"] == pytest.approx(3250)
    assert figures["worst gap ms"] == pytest.approx(2000)
    assert figures["ms per token"] == pytest.approx((1500 + 750) / 2)
    assert figures["chunks per token"] == 1


def test_tokens_that_come_together_count_by_themselves() -> None:
    figures = figures_of([trace(1, 3, tokens=5)])

    assert figures["ms per token"] == pytest.approx(500)
    assert figures["chunks per token"] == pytest.approx(0.4)


def test_gaps_are_those_of_a_choice() -> None:
    answer = trace(1, 3)
    answer.arrivals[1] = [2, 2.5]

    assert figures_of([answer])["worst gap ms"] == pytest.approx(2000)


def test_labelled_requests_have_figures_of_their_own() -> None:
    figures = figures_of([trace(4, label="cold"), trace(5, label="warm", start=4)])

    assert figures["cold: TTFT ms"] == pytest.approx(4000)
    assert figures["warm: TTFT ms"] == pytest.approx(1000)


def test_an_answer_of_which_nothing_can_be_seen_has_no_figures() -> None:
    answer = trace(1)
    answer.arrivals = {}

    with pytest.raises(ValueError, match="could be seen"):
        figures_of([answer])


def test_an_answer_of_control_tokens_alone_counts_for_throughput_only() -> None:
    unseen = trace(4, tokens=5)
    unseen.arrivals = {0: []}

    figures = figures_of([trace(1, 2, 3), unseen])

    assert figures["tokens/s"] == pytest.approx(8 / 4)
    assert figures["TTFT ms"] == pytest.approx(1000)


def test_ratios_are_taken_within_a_round() -> None:
    rounds = [
        {"A": {"s": 2.0}, "B": {"s": 1.0}},
        {"A": {"s": 30.0}, "B": {"s": 10.0}},
        {"A": {"s": 4.0}, "B": {"s": 1.0}},
    ]

    assert ratios(rounds, "A", "B") == {"s": Spread(3, 2, 4)}
    assert differences(rounds, "A", "B", "s") == Spread(3, 1, 20)


def test_a_figure_that_a_round_lacks_is_left_out_of_its_ratios() -> None:
    rounds = [{"A": {"s": 2.0}, "B": {"s": 0.0}}, {"A": {"s": 2.0}}]

    assert ratios(rounds, "A", "B") == {}
    assert differences(rounds[1:], "A", "B", "s") is None


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_come_out_however_the_bytes_are_cut(size: int) -> None:
    events = [b'data: {"a": 1}\n\n', b"data: \xc3\xa4\n\n", b"data: [DONE]\n\n"]
    data = HEAD + chunk(events[0] + events[1][:7]) + chunk(events[1][7:]) + chunk(events[2])
    data += b"0\r\n\r\n"
    pieces = [(float(at), data[at : at + size]) for at in range(0, len(data), size)]

    assert [event for _, event in timed_events(pieces)] == [b'{"a": 1}', b"\xc3\xa4", b"[DONE]"]


def test_an_event_has_the_time_of_its_last_byte() -> None:
    first, second = chunk(b"data: a\n\ndata:"), chunk(b" b\n\n")

    pieces = [(1.0, HEAD), (2.0, first), (3.0, second[:-2]), (4.0, second[-2:])]

    assert list(timed_events(pieces)) == [(2.0, b"a"), (4.0, b"b")]


def test_a_comment_is_no_event() -> None:
    pieces = [(1.0, HEAD), (2.0, chunk(b": still here\n\n")), (3.0, chunk(b":\n\ndata: a\n\n"))]

    assert list(timed_events(pieces)) == [(3.0, b"a")]


def test_a_refusal_is_no_stream() -> None:
    answer = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\n{}"

    with pytest.raises(AnswerError, match=r"status 429: \{\}"):
        list(timed_events([(0.0, answer)]))


@pytest.mark.parametrize(
    ("answer", "complete"),
    [
        (HEAD, False),
        (b"HTTP/1.1 200 OK\r\nx-time: 10\r\n\r\n", False),
        (HEAD + chunk(b"data: 0\n\n"), False),
        (HEAD + chunk(b"data: 0\n\n") + b"0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
    ],
)
def test_where_an_answer_ends(answer: bytes, *, complete: bool) -> None:
    assert is_complete(answer) is complete
