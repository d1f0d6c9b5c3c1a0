"""The limits of each key: requests and tokens per minute, and requests at once."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

from ovchat_server.domain.rate_limit_error import RateLimitError
from ovchat_server.serving.sliding_window import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ovchat_server.domain.identity import Identity, KeyRules
    from ovchat_server.serving.record import RequestRecord

# Seconds after which one of the requests at once may have ended.
AGAIN: Final = 1.0


class RateLimits:
    """Counts what callers use, each by its name."""

    def __init__(self, servers: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        """Count from zero.

        Args:
            servers: How many servers share each limit: every one of them grants its part.
            clock: Tells the seconds, and is never set back.
        """
        self._servers = servers
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @contextlib.contextmanager
    def admitted(self, record: RequestRecord) -> Iterator[None]:
        """Count a request while it runs, and its tokens when it is over.

        Raises:
            RateLimitError: Its caller has used a limit up.
        """
        caller = record.caller
        if not caller.rules.limit_use:
            yield
            return
        use = self._use(caller)
        try:
            use.admit(caller, self._clock())
        finally:
            record.rate_limits = use.headers(self._clock())
        try:
            yield
        finally:
            use.running -= 1
            # What no engine has begun costs nothing.
            if record.times.admitted is not None:
                use.charge(record.prompt_tokens + record.completion_tokens, self._clock())
            record.rate_limits = use.headers(self._clock())

    def _use(self, caller: Identity) -> _Use:
        use = self._uses.setdefault(caller.name, _Use())
        # They may have changed in the file of keys.
        use.follow(caller.rules, self._servers)
        return use


class _Use:
    """What one caller uses."""

    def __init__(self) -> None:
        self.running = 0
        self._most: int | None = None
        self._windows: dict[str, SlidingWindow] = {}

    def follow(self, rules: KeyRules, servers: int) -> None:
        self._most = _part(rules.concurrent_requests, servers)
        limits = {"requests": rules.requests_per_minute, "tokens": rules.tokens_per_minute}
        for unit, limit in limits.items():
            if (part := _part(limit, servers)) is None:
                self._windows.pop(unit, None)
            else:
                self._windows.setdefault(unit, SlidingWindow(part)).limit = part

    def admit(self, caller: Identity, now: float) -> None:
        for unit, window in self._windows.items():
            if wait := window.free_after(now):
                raise RateLimitError.per_minute(caller.name, unit, window.limit, wait)
        if self._most is not None and self.running >= self._most:
            raise RateLimitError.at_once(caller.name, self._most, AGAIN)
        self.running += 1
        if requests := self._windows.get("requests"):
            requests.use(1, now)

    def charge(self, amount: int, now: float) -> None:
        if tokens := self._windows.get("tokens"):
            tokens.use(amount, now)

    def headers(self, now: float) -> Sequence[tuple[str, str]]:
        """Return OpenAI's headers."""
        return [
            (f"x-ratelimit-{what}-{unit}", value)
            for unit, window in self._windows.items()
            for what, value in (
                ("limit", str(window.limit)),
                ("remaining", str(window.remaining(now))),
                ("reset", _duration(window.reset_after(now))),
            )
        ]


def _part(limit: int | None, servers: int) -> int | None:
    return None if limit is None else max(1, limit // servers)


def _duration(seconds: float) -> str:
    """Write a duration as OpenAI does: 250ms, 1.5s, 1m30s."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    minutes, rest = divmod(round(seconds, 1), 60)
    text = f"{rest:.1f}".removesuffix(".0") + "s"
    return f"{minutes:.0f}m{text}" if minutes else text
