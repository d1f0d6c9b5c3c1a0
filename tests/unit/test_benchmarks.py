"""What figures are made of, how a stream is read, and what fits into the time there is."""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING

import pytest

from benchmarks.figures import Spread, differences, figures_of, quantile, ratios
from benchmarks.plan import Ask, Lane, Plan, Trace
from benchmarks.report import Result, write
from benchmarks.schedule import Progress, Schedule, duration, guess
from benchmarks.sse import AnswerError, is_complete, timed_events

if TYPE_CHECKING:
    from pathlib import Path

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


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(schedule: Schedule, clock: Clock, seconds: dict[str, float]) -> list[str]:
    """Take so long for each; what was measured, with the time that was left before it."""
    found = []
    for step in schedule.steps():
        found.append(f"{step.name} {step.round}: {schedule.remaining():g}")
        clock.now += seconds[step.name]
    return found


def test_everything_is_measured_once_before_anything_is_measured_twice() -> None:
    clock = Clock()
    schedule = Schedule({"a": 1, "b": 1}, rounds=2, clock=clock)

    measured = run(schedule, clock, {"a": 1, "b": 1})

    assert [name.partition(":")[0] for name in measured] == ["a 0", "b 0", "a 1", "b 1"]
    assert schedule.left_out() == {}


def test_the_time_left_is_told_from_earlier_rounds_and_from_the_pace_before_there_were_any() -> (
    None
):
    clock = Clock()
    schedule = Schedule({"a": 1, "b": 2}, rounds=2, clock=clock)

    measured = run(schedule, clock, {"a": 10, "b": 30})

    # After a took ten times what was guessed, b is expected to, too, until it took 30.
    assert measured == ["a 0: 6", "b 0: 50", "a 1: 40", "b 1: 30"]


def test_the_time_left_becomes_less_while_something_is_measured() -> None:
    clock = Clock()
    schedule = Schedule({"a": 5}, rounds=1, clock=clock)

    for _ in schedule.steps():
        clock.now += 2
        assert schedule.remaining() == 3
        clock.now += 8
        assert schedule.remaining() == 0


def test_what_does_not_fit_into_the_time_is_left_out_and_the_rest_is_not() -> None:
    clock = Clock()
    schedule = Schedule({"a": 1, "slow": 100, "b": 1}, rounds=3, deadline=10, clock=clock)

    measured = run(schedule, clock, {"a": 2, "b": 2})

    assert [name.partition(":")[0] for name in measured] == ["a 0", "b 0", "a 1", "b 1", "a 2"]
    assert schedule.left_out() == {"slow": 3, "b": 1}
    assert clock.now == 10


def test_something_is_measured_however_little_time_there_is() -> None:
    clock = Clock()
    schedule = Schedule({"a": 100, "b": 100}, rounds=2, deadline=1, clock=clock)

    assert run(schedule, clock, {"a": 100}) == ["a 0: 1"]
    assert schedule.left_out() == {"a": 1, "b": 2}


def test_more_and_longer_answers_to_longer_prompts_are_guessed_to_take_longer() -> None:
    def plan(words: int = 10, tokens: int = 16, lanes: int = 1, choices: int = 1) -> Plan:
        messages = (("user", "word " * words),)
        ask = Ask(messages=messages, max_tokens=tokens, choices=choices)
        return Plan(((Lane((ask,)),) * lanes,))

    assert guess(plan()) < guess(plan(words=1000))
    assert guess(plan()) < guess(plan(tokens=32))
    assert guess(plan()) < guess(plan(choices=4)) < guess(plan(lanes=4))
    assert guess(plan(lanes=4)) < 4 * guess(plan())


def test_progress_says_how_much_time_has_passed() -> None:
    clock, output = Clock(), io.StringIO()
    progress = Progress(output, clock)
    clock.now = 3725

    progress.say("round 1 of 5")

    assert output.getvalue() == "[ 62:05] round 1 of 5\n"
    assert [duration(seconds) for seconds in (0.4, 119, 121, 3000)] == [
        "0 s",
        "119 s",
        "2 min",
        "50 min",
    ]


async def test_progress_is_repeated_until_it_is_over() -> None:
    output, described = io.StringIO(), asyncio.Event()

    def describe() -> str:
        described.set()
        return "some requests"

    async with Progress(output, Clock()).repeated(describe, interval=0):
        await described.wait()

    assert "[  0:00] some requests\n" in output.getvalue()


def test_a_report_says_what_was_left_out(tmp_path: Path) -> None:
    result = Result(model="demo", machine={"command": "suite"}, client={}, left_out={"behind": 4})

    text = write(result, tmp_path, "demo").read_text()

    assert "Rounds left out for lack of time: 4 of behind." in text
