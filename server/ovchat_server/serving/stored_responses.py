"""Responses kept in memory, to be got and continued."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.serving.memory_size import memory_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.chat import Message
    from ovchat_server.domain.completion import Completion
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.serving.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A complete response.

    Attributes:
        conversation: All messages until its answer, and the answer; without instructions.
    """

    request: ResponsesRequest
    completion: Completion
    conversation: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    response: StoredResponse
    size: int
    expires: float


class StoredResponses:
    """A table of responses, bounded by number, bytes and age. Only its owner sees a response.

    Where there is no room, the oldest goes of the owner who has most: nobody loses theirs to
    another who keeps more. A conversation goes on from its newest response, so an old one is the
    one that is missed least; and the one order tells what is too old, too.
    """

    def __init__(
        self,
        max_count: int,
        max_bytes: int,
        max_age: float,
        workers: WorkerPool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep nothing yet.

        Args:
            max_count: How many responses are kept; 0 for none.
            max_bytes: How many bytes all of them take. Each counts with its whole conversation,
                although conversations share their texts: so they take less.
            max_age: The seconds for which a response is kept.
            workers: Threads for counting bytes, which may take seconds.
            clock: Tells the seconds, and is never set back.
        """
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._workers = workers
        self._clock = clock
        # By owner and id, the oldest first.
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._bytes = 0

    @property
    def enabled(self) -> bool:
        """Whether any response is kept."""
        return self._max_count > 0

    async def put(self, owner: str, response: StoredResponse) -> None:
        """Keep a response, unless it alone is too large; others make room for it."""
        size = await self._workers.run(partial(memory_size, response))
        self._drop_expired()
        if size > self._max_bytes:
            return
        key = owner, response.completion.info.id
        self._kept[key] = _Kept(response, size, self._clock() + self._max_age)
        self._bytes += size
        while len(self._kept) > self._max_count:
            self._drop_oldest_of(Counter(of for of, _ in self._kept))
        while self._bytes > self._max_bytes:
            sizes: Counter[str] = Counter()
            for (of, _), kept in self._kept.items():
                sizes[of] += kept.size
            self._drop_oldest_of(sizes)

    def get(self, owner: str, response_id: str) -> StoredResponse | None:
        """Return the response of that id; None if the owner has none."""
        self._drop_expired()
        kept = self._kept.get((owner, response_id))
        return kept.response if kept else None

    def delete(self, owner: str, response_id: str) -> bool:
        """Delete the response of that id; return whether the owner had one."""
        self._drop_expired()
        kept = self._kept.pop((owner, response_id), None)
        self._bytes -= kept.size if kept else 0
        return kept is not None

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).expires <= now:
            self._drop(next(iter(self._kept)))

    def _drop_oldest_of(self, owners: Counter[str]) -> None:
        """Drop the oldest response of the owner who has most, by this count."""
        [(most, _)] = owners.most_common(1)
        self._drop(next(key for key in self._kept if key[0] == most))

    def _drop(self, key: tuple[str, str]) -> None:
        self._bytes -= self._kept.pop(key).size
