"""Chooses which texts run together in the next batch.

A batch costs its padded size, count times longest, and about BATCH_COST tokens more, whatever is
in it. So a text joins a batch unless the padding that comes with it costs more than a batch of its
own would.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.pooling_engine import TOKEN_BYTES
from ovchat_server.engine.pooling.priority_order import PriorityOrder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.engine.contract.pooling_messages import PoolingInput, PoolingRequest

# In tokens, as measured on models of 6 layers (384 features) and of 12 (768).
BATCH_COST = 16
# Texts are found by the class of their lengths, which differ by less than so many tokens.
CLASS_WIDTH = 8
# How far a text's class may be from the first text's, the nearest first.
CLASS_DISTANCES = (0, -1, 1, -2, 2)
# How many times clients are asked for a text that fits, for one batch.
MAX_ASKED = 1000


@dataclass(slots=True)
class WaitingRequest:
    """A request and those of its texts that have not run.

    Attributes:
        left: The places of its texts by the class of their lengths, the next one last.
    """

    request: PoolingRequest
    left: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort its texts into classes."""
        for place in reversed(range(len(self.request.inputs))):
            self.left.setdefault(self.length(place) // CLASS_WIDTH, []).append(place)

    @property
    def next_class(self) -> int:
        """Return the class of its next text."""
        return min(self.left, key=lambda number: self.left[number][-1])

    def length(self, place: int) -> int:
        """Return how many tokens a text has."""
        return len(self.request.inputs[place].tokens) // TOKEN_BYTES


@dataclass(frozen=True, slots=True)
class BatchText:
    """A text of a batch, and whose it is."""

    owner: WaitingRequest
    text: PoolingInput


@dataclass(slots=True)
class _Room:
    """How full a batch is."""

    budget: int
    count: int = 0
    longest: int = 0

    @property
    def full(self) -> bool:
        return (self.count + 1) * self.longest > self.budget

    def fits(self, length: int) -> bool:
        size = (self.count + 1) * max(self.longest, length)
        padding = size - self.count * self.longest - length
        return size <= self.budget and padding <= BATCH_COST

    def add(self, length: int) -> None:
        self.count += 1
        self.longest = max(self.longest, length)


class _Queue:
    """Requests that take turns as one, by their own priority: a client's, or a suspect's own."""

    def __init__(self) -> None:
        self._requests: PriorityOrder[WaitingRequest] = PriorityOrder()
        self._classes: dict[int, PriorityOrder[WaitingRequest]] = {}

    def __bool__(self) -> bool:
        return bool(self._requests)

    def add(self, waiting: WaitingRequest) -> None:
        place = waiting.request.own_priority, waiting.request.id
        self._requests.add(*place, waiting)
        for number in waiting.left:
            self._classes.setdefault(number, PriorityOrder()).add(*place, waiting)

    def remove(self, waiting: WaitingRequest) -> None:
        self._requests.remove(waiting.request.own_priority, waiting.request.id)
        for number in waiting.left:
            self._leave(number, waiting)

    def lead(self, room: _Room) -> tuple[BatchText, int]:
        """Take the next text of the first request; return it and its class."""
        waiting = self._requests.first
        number = waiting.next_class
        return self._take(waiting, number, room), number

    def fill(self, near: int, room: _Room) -> BatchText | None:
        """Take the first text of a class near one, if one fits."""
        for distance in CLASS_DISTANCES:
            number = near + distance
            if same := self._classes.get(number):
                waiting = same.first
                if room.fits(waiting.length(waiting.left[number][-1])):
                    return self._take(waiting, number, room)
        return None

    def _take(self, waiting: WaitingRequest, number: int, room: _Room) -> BatchText:
        places = waiting.left[number]
        place = places.pop()
        if not places:
            del waiting.left[number]
            self._leave(number, waiting)
        if not waiting.left:
            self._requests.remove(waiting.request.own_priority, waiting.request.id)
        room.add(waiting.length(place))
        return BatchText(waiting, waiting.request.inputs[place])

    def _leave(self, number: int, waiting: WaitingRequest) -> None:
        same = self._classes[number]
        same.remove(waiting.request.own_priority, waiting.request.id)
        if not same:
            del self._classes[number]


# A client, and for a suspect of theirs its id.
_Key = tuple[str, int]


@dataclass(slots=True)
class _Level:
    """The queues of one priority.

    Attributes:
        leading: In the order in which they lead batches.
        filling: Those that fill batches of others, in the order in which they are asked. Of its
            own: who fills must not lose the turn to lead, or its oldest request might never run.
    """

    leading: OrderedDict[_Key, _Queue] = field(default_factory=OrderedDict)
    filling: OrderedDict[_Key, _Queue] = field(default_factory=OrderedDict)


class Batches:
    """Requests that wait, and which of their texts run next.

    The first batch of a suspect goes before all others. Then the lowest priority number goes
    first; among these clients take turns, and of a client the request with the lowest priority of
    its own, or the oldest of these. Its next text leads the batch, which texts of about the same
    length fill up, of all clients in turn. Suspects run with no others.
    """

    def __init__(self, max_batch_tokens: int) -> None:
        """Begin with none; a batch has so many tokens, padding included, or one text."""
        self._budget = max_batch_tokens
        self._waiting: dict[int, WaitingRequest] = {}
        self._levels: dict[int, _Level] = {}
        self._priorities: list[int] = []
        self._suspects: OrderedDict[int, _Queue] = OrderedDict()

    def __len__(self) -> int:
        """Return how many requests have texts that wait."""
        return len(self._waiting)

    def add(self, request: PoolingRequest) -> None:
        """Add a request, which has texts."""
        waiting = self._waiting[request.id] = WaitingRequest(request)
        level = self._levels.get(request.priority)
        if level is None:
            level = self._levels[request.priority] = _Level()
            insort(self._priorities, request.priority)
        key = _key(request)
        queue = level.leading.get(key)
        if queue is None:
            queue = level.leading[key] = _Queue()
            if request.suspect:
                self._suspects[request.id] = queue
            else:
                level.filling[key] = queue
        queue.add(waiting)

    def remove(self, identifier: int) -> None:
        """Remove what waits of a request; one that is not here is no error."""
        if waiting := self._waiting.get(identifier):
            request = waiting.request
            self._levels[request.priority].leading[_key(request)].remove(waiting)
            self._forget(request)

    def next(self) -> list[BatchText]:
        """Take the texts of the next batch; some wait."""
        room = _Room(self._budget)
        if self._suspects:
            _, queue = self._suspects.popitem(last=False)
        else:
            leading = self._levels[self._priorities[0]].leading
            key, queue = next(iter(leading.items()))
            leading.move_to_end(key)
        first, near = queue.lead(room)
        alone = first.owner.request.suspect
        others = self._own(queue, near, room) if alone else self._others(near, room)
        batch = [first, *others]
        for owner in {id(item.owner): item.owner for item in batch}.values():
            if not owner.left:
                self._forget(owner.request)
        return batch

    def _own(self, queue: _Queue, near: int, room: _Room) -> Iterator[BatchText]:
        while not room.full and (text := queue.fill(near, room)):
            yield text

    def _others(self, near: int, room: _Room) -> Iterator[BatchText]:
        asked = 0
        for priority in self._priorities:
            filling = self._levels[priority].filling
            declined = 0
            while declined < len(filling):
                if room.full or asked == MAX_ASKED:
                    return
                key, queue = next(iter(filling.items()))
                filling.move_to_end(key)
                asked += 1
                if text := queue.fill(near, room):
                    declined = 0
                    yield text
                else:
                    declined += 1

    def _forget(self, request: PoolingRequest) -> None:
        """Forget a request of which nothing waits, and the queue if it was the last in it."""
        del self._waiting[request.id]
        self._suspects.pop(request.id, None)
        level, key = self._levels.get(request.priority), _key(request)
        # Another request of the batch may have been the last, too.
        if level is None or level.leading.get(key):
            return
        level.leading.pop(key, None)
        level.filling.pop(key, None)
        if not level.leading:
            del self._levels[request.priority]
            self._priorities.remove(request.priority)


def _key(request: PoolingRequest) -> _Key:
    return request.client, request.id if request.suspect else 0
