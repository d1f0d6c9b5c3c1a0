"""What callers may use within a minute, by a clock of their own."""

from __future__ import annotations

import contextlib
import heapq
import random
from typing import TYPE_CHECKING

import pytest

from ovchat_server.domain.identity import Identity, KeyRules
from ovchat_server.domain.rate_limit_error import RateLimitError
from ovchat_server.serving.rate_limits import RateLimits
from ovchat_server.serving.record import RequestRecord
from ovchat_server.serving.sliding_window import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_window_has_room_again_when_what_was_used_is_a_minute_old() -> None:
    window = SlidingWindow(3)
    for now in (0.0, 10.0, 10.05):
        assert not window.free_after(now)
        window.use(1, now)
    assert (window.remaining(11), window.free_after(11), window.reset_after(11)) == (0, 49, 59)
    assert (window.remaining(60), window.free_after(60), window.reset_after(60)) == (1, 0, 10)
    assert (window.remaining(70), window.reset_after(70)) == (3, 0)


def test_what_is_too_much_is_paid_for_by_waiting() -> None:
    window = SlidingWindow(10)
    window.use(25, 0.0)
    assert [window.free_after(now) for now in (0.0, 60.0, 120.0)] == [120, 60, 0]
    assert window.remaining(120) == 5


def test_a_limit_may_change_meanwhile() -> None:
    window = SlidingWindow(2)
    window.use(2, 0.0)
    window.limit = 5
    window.use(1, 1.0)
    assert window.remaining(2.0) == 2
    window.limit = 1
    assert (window.remaining(2.0), window.free_after(2.0)) == (0, 59)


def test_a_large_debt_takes_no_longer_to_count() -> None:
    window = SlidingWindow(10)
    now = 0.0
    for _ in range(60):
        # The uses of a full minute, each followed by a debt of years.
        window.use(10**9, now)
        now += 1
    assert len(window._uses) <= 60
    debt = 60 * 10**9
    assert window.free_after(now) == pytest.approx(debt / 10 * 60, rel=1e-6)
    assert window.reset_after(now) >= window.free_after(now)
    # When it is paid, all of the limit is there again.
    later = now + window.reset_after(now)
    assert (window.remaining(later), window._debt) == (10, 0)


def test_a_debt_is_paid_whenever_somebody_looks() -> None:
    seldom, often = SlidingWindow(7), SlidingWindow(7)
    for window in (seldom, often):
        for amount, now in ((3, 0.0), (2, 20.0), (50, 35.0)):
            window.use(amount, now)
    for second in range(36, 500):
        often.remaining(second)
    for second in (500, 501.5, 530):
        found = [
            (window.remaining(second), window.free_after(second), window.reset_after(second))
            for window in (seldom, often)
        ]
        assert found[0] == found[1]


def record_of(name: str, rules: KeyRules, tokens: int = 0) -> RequestRecord:
    record = RequestRecord(caller=Identity(name, name, rules), completion_tokens=tokens)
    record.times.admit(0.0)
    return record


def test_a_request_that_no_engine_began_costs_no_tokens() -> None:
    limits, record = RateLimits(), record_of("ann", KeyRules(tokens_per_minute=10), tokens=20)
    record.times.forget()
    for _ in range(2):
        with limits.admitted(record):
            pass
    assert dict(record.rate_limits)["x-ratelimit-remaining-tokens"] == "10"


def test_requests_at_once_are_counted_until_they_end() -> None:
    limits, rules = RateLimits(), KeyRules(concurrent_requests=2)
    with limits.admitted(record_of("ann", rules)):
        with limits.admitted(record_of("ann", rules)):
            with (
                pytest.raises(RateLimitError, match="'ann' may have 2 requests at once") as caught,
                limits.admitted(record_of("ann", rules)),
            ):
                pytest.fail("it was admitted")
            assert caught.value.retry_after == 1
            with limits.admitted(record_of("bob", rules)):
                pass
        with limits.admitted(record_of("ann", rules)):
            pass


def test_callers_are_told_what_they_may_still_use() -> None:
    now = 0.0
    limits = RateLimits(clock=lambda: now)
    record = record_of("ann", KeyRules(requests_per_minute=2, tokens_per_minute=100), tokens=30)
    with limits.admitted(record):
        assert dict(record.rate_limits)["x-ratelimit-remaining-tokens"] == "100"
    assert dict(record.rate_limits) == {
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "1m0s",
        "x-ratelimit-limit-tokens": "100",
        "x-ratelimit-remaining-tokens": "70",
        "x-ratelimit-reset-tokens": "1m0s",
    }
    now = 30.5
    with limits.admitted(record):
        pass
    with pytest.raises(RateLimitError, match="2 requests per minute") as caught:
        limits.admitted(record).__enter__()
    assert str(caught.value).endswith("Try again in 30 s.")
    assert caught.value.retry_after == 29.5
    assert dict(record.rate_limits)["x-ratelimit-remaining-requests"] == "0"
    now = 59.75
    with pytest.raises(RateLimitError):
        limits.admitted(record).__enter__()
    assert dict(record.rate_limits)["x-ratelimit-reset-requests"] == "30.8s"


@pytest.mark.parametrize(("servers", "granted"), [(1, 5), (2, 2), (8, 1)])
def test_each_of_several_servers_grants_its_part(servers: int, granted: int) -> None:
    limits, rules = RateLimits(servers, lambda: 0.0), KeyRules(requests_per_minute=5)
    admitted = 0
    with contextlib.suppress(RateLimitError):
        while True:
            with limits.admitted(record_of("ann", rules)):
                admitted += 1
    assert admitted == granted


def test_who_has_no_limits_leaves_nothing_behind() -> None:
    limits, record = RateLimits(), record_of("", KeyRules(models=("demo",)), tokens=5)
    with limits.admitted(record):
        pass
    assert not record.rate_limits
    assert not limits._uses


# Requests that take minutes of a limit come in whole numbers: over an hour that is little.
MINUTES = 60


@pytest.mark.parametrize(
    ("rules", "size"),
    [
        ({"ann": 60, "bob": 120}, lambda _: 1),
        # Of answers whose tokens are known at their end: few, many, and more than a minute has.
        ({"ann": 6_000, "bob": 12_000}, lambda chance: chance.randint(1, 400)),
        ({"ann": 10_000, "bob": 30_000}, lambda chance: chance.choice((50, 4_000))),
    ],
)
def test_callers_at_three_times_their_limits_get_their_shares(
    rules: dict[str, int], size: Callable[[random.Random], int]
) -> None:
    """Each sends what comes to three times its limit, whether it is refused or not."""
    chance, now = random.Random(5), 0.0
    limits = RateLimits(clock=lambda: now)
    tokens = size(chance) != 1
    served = dict.fromkeys(rules, 0)
    # When what happens: a request that begins, or one that ends.
    events: list[tuple[float, int, str, contextlib.ExitStack | None]] = []
    mean = sum(size(random.Random(n)) for n in range(1000)) / 1000
    for name, limit in rules.items():
        gap = 60 * mean / (3 * limit)
        for number in range(int(MINUTES * 60 / gap)):
            heapq.heappush(events, (number * gap, len(events), name, None))
    while events and events[0][0] < MINUTES * 60:
        now, _, name, running = heapq.heappop(events)
        if running is not None:
            running.close()
            continue
        amount, limit = size(chance), rules[name]
        rule = KeyRules(tokens_per_minute=limit) if tokens else KeyRules(requests_per_minute=limit)
        with contextlib.suppress(RateLimitError), contextlib.ExitStack() as stack:
            stack.enter_context(limits.admitted(record_of(name, rule, amount)))
            served[name] += amount
            # A second, so that several are under way when one is charged.
            heapq.heappush(events, (now + 1, len(events) + 10**6, name, stack.pop_all()))
    for name, limit in rules.items():
        assert served[name] == pytest.approx(limit * MINUTES, rel=0.1), name
