"""The table of stored responses: its bounds, and whose they are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.completion import Choice, Completion, CompletionInfo, FinishReason, Usage
from ovchat_server.domain.content import Image
from ovchat_server.domain.responses.request import ResponsesRequest
from ovchat_server.serving.memory_size import memory_size
from ovchat_server.serving.stored_responses import StoredResponse, StoredResponses
from tests.unit.serving_tools import WORKERS

if TYPE_CHECKING:
    from collections.abc import Sequence

HELLO = Message(Role.USER, ("Hello",))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def response(name: str, conversation: Sequence[Message] = (HELLO,)) -> StoredResponse:
    choice = Choice(0, conversation[-1], FinishReason.STOP)
    completion = Completion(CompletionInfo(name, 1, "demo", "fp"), (choice,), Usage(1, 1))
    request = ResponsesRequest(ChatRequest("demo", (HELLO,)))
    return StoredResponse(request, completion, tuple(conversation))


def table(
    max_count: int = 10, max_bytes: int = 1 << 20, max_age: float = 60, clock: Clock | None = None
) -> StoredResponses:
    return StoredResponses(max_count, max_bytes, max_age, WORKERS, clock or Clock())


def names(stored: StoredResponses, count: int, owner: str = "") -> list[int]:
    """Those of the responses "0", "1", ... that are there."""
    return [number for number in range(count) if stored.get(owner, str(number))]


async def test_a_response_is_its_owners_alone() -> None:
    stored = table()
    kept = response("a")
    await stored.put("me", kept)

    assert stored.get("me", "a") is kept
    for other in ("", "you"):
        assert stored.get(other, "a") is None
        assert not stored.delete(other, "a")
    assert stored.delete("me", "a")
    assert not stored.delete("me", "a")
    assert stored.get("me", "a") is None


async def test_the_oldest_makes_room() -> None:
    stored = table(max_count=3)
    for number in range(5):
        await stored.put("", response(str(number)))
    assert names(stored, 5) == [2, 3, 4]


async def test_who_keeps_most_makes_room() -> None:
    stored = table(max_count=4)
    await stored.put("me", response("0"))
    for number in range(10):
        await stored.put("you", response(str(number)))
    assert names(stored, 10, "me") == [0]
    assert names(stored, 10, "you") == [7, 8, 9]


async def test_who_keeps_the_most_bytes_makes_room() -> None:
    small, large = response("0"), response("0", (Message(Role.USER, ("x" * 10_000,)),))
    stored = table(max_bytes=2 * memory_size(large) + memory_size(small))
    for number in range(3):
        await stored.put("me", response(str(number)))
    for number in range(5):
        await stored.put(
            "you", response(str(number), (Message(Role.USER, (f"{number}" * 10_000,)),))
        )
    assert names(stored, 3, "me") == [0, 1, 2]
    assert names(stored, 5, "you") == [4]


async def test_none_is_kept_where_none_may_be() -> None:
    stored = table(max_count=0)
    await stored.put("", response("0"))
    assert not stored.enabled
    assert names(stored, 1) == []


async def test_a_response_expires() -> None:
    clock = Clock()
    stored = table(clock=clock, max_age=60)
    for number in range(3):
        clock.now = number * 25
        await stored.put("", response(str(number)))
    clock.now = 59.9
    assert names(stored, 3) == [0, 1, 2]
    clock.now = 85
    assert names(stored, 3) == [2]


async def test_one_that_is_too_large_is_not_kept_and_displaces_none() -> None:
    stored = table(max_bytes=10_000)
    await stored.put("", response("0"))
    await stored.put("", response("1", [Message(Role.USER, ("x" * 10_000,))]))
    assert names(stored, 2) == [0]


async def test_a_deleted_one_leaves_its_bytes_to_others() -> None:
    size = memory_size(response("0"))
    stored = table(max_bytes=2 * size)
    await stored.put("", response("0"))
    await stored.put("", response("1"))
    stored.delete("", "1")
    await stored.put("", response("2"))
    assert names(stored, 3) == [0, 2]


def test_all_of_a_conversation_counts() -> None:
    few = memory_size(response("a"))
    data = Image(data=b"x" * 50_000)
    url = Image("data:image/png;base64," + "x" * 50_000)
    for content in (data, url, "x" * 50_000):
        assert memory_size(response("a", [Message(Role.USER, (content,)), HELLO])) > few + 50_000


def test_what_is_shared_counts_once() -> None:
    text = "x" * 1000
    assert memory_size([text, {"text": text}]) < 2 * sys.getsizeof(text)


@given(st.lists(st.integers(0, 5000), max_size=30), st.integers(1, 30_000))
async def test_a_chain_never_holds_more_than_its_bytes(texts: list[int], most: int) -> None:
    stored = table(max_count=1000, max_bytes=most)
    conversation: list[Message] = []
    sizes = {}
    for number, length in enumerate(texts):
        conversation.append(Message(Role.USER, ("x" * length,)))
        kept = response(str(number), conversation)
        sizes[number] = memory_size(kept)
        await stored.put("", kept)
        found = names(stored, number + 1)
        assert sum(sizes[each] for each in found) <= most
        # No more went than had to: those that are left are the newest.
        assert found == list(range(number + 1))[len(sizes) - len(found) :] or sizes[number] > most
