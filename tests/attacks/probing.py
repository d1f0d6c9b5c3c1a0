"""The figures of a caller whom an attack may harm."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass
class Figures:
    """How a caller fared: what each request got, and in which time."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        """What a test prints."""
        median, worst = statistics.median(self.seconds), max(self.seconds)
        return f"{dict(self.outcomes)}, median {median * 1000:.1f} ms, most {worst * 1000:.1f} ms"


async def figures(ask: Callable[[], Awaitable[str]], times: int) -> Figures:
    """Ask so often, one request after the other."""
    found = Figures()
    for _ in range(times):
        begun = time.perf_counter()
        found.outcomes[await ask()] += 1
        found.seconds.append(time.perf_counter() - begun)
    return found


async def status(http: httpx.AsyncClient, path: str, body: object = None) -> str:
    """The status of a GET, or of a POST if there is a body; or the class of the failure."""
    try:
        answer = await (http.get(path) if body is None else http.post(path, json=body))
    except httpx.TransportError as error:
        return type(error).__name__
    return str(answer.status_code)


def chat(tokens: int = 3) -> dict[str, object]:
    """A short chat with the successor model."""
    messages = [{"role": "user", "content": "a"}]
    return {"model": "successor", "messages": messages, "max_tokens": tokens}
