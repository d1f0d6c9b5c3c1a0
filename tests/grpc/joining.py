"""Streams and whole answers in one form, to be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import message_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat.v1 import chat_pb2, completion_pb2

# The engine's rounding depends on what it runs at once.
ROUNDING = 1e-4


@dataclass
class Joined:
    """One choice: what a reader of all its parts has in the end."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[tuple[str, bytes]] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    finish: int = 0
    stop: str | int | None = None
    logprobs: list[float] = field(default_factory=list, compare=False)

    def end(self, choice: Any) -> None:
        """Take over what every kind of choice has."""
        for token in choice.logprobs.content:
            self.tokens.append((token.token, token.bytes))
            # Of alternatives as likely as each other, either may come first.
            tops = [top.logprob for top in token.top_logprobs]
            self.logprobs += [token.logprob, *tops]
        if choice.finish_reason:
            assert not self.finish, "it ended before"
            self.finish = choice.finish_reason
        if choice.HasField("stop_reason"):
            self.stop = choice.stop_reason
        if choice.HasField("stop_token_id"):
            self.stop = choice.stop_token_id


def whole_chat(completion: chat_pb2.ChatCompletion) -> list[Joined]:
    choices = []
    for choice in completion.choices:
        message = choice.message
        joined = Joined(
            text="".join(part.text for part in message.content),
            reasoning=message.reasoning_content,
            calls=[(call.function.name, call.function.arguments) for call in message.tool_calls],
        )
        joined.end(choice)
        choices.append(joined)
    return choices


def streamed_chat(chunks: Iterable[chat_pb2.ChatCompletionChunk]) -> list[Joined]:
    choices: list[Joined] = []
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        announced = choice.delta.role == message_pb2.ROLE_ASSISTANT
        assert announced == (choice.index == len(choices)), "once, and in order"
        if announced:
            choices.append(Joined())
        joined = choices[choice.index]
        assert not joined.finish, "nothing comes after the end"
        joined.text += choice.delta.content
        joined.reasoning += choice.delta.reasoning_content
        for call in choice.delta.tool_calls:
            first = call.index == len(joined.calls)
            assert call.HasField("id") == call.HasField("name") == first
            if first:
                joined.calls.append((call.name, ""))
            name, arguments = joined.calls[call.index]
            joined.calls[call.index] = (name, arguments + call.arguments)
        joined.end(choice)
    return choices


def whole_text(completion: completion_pb2.Completion) -> list[Joined]:
    assert [choice.index for choice in completion.choices] == list(range(len(completion.choices)))
    return _texts(completion.choices)


def streamed_text(chunks: Iterable[completion_pb2.CompletionChunk]) -> list[Joined]:
    return _texts(choice for chunk in chunks for choice in chunk.choices)


def assert_same(streamed: list[Joined], whole: list[Joined]) -> None:
    assert streamed == whole
    for one, other in zip(streamed, whole, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=ROUNDING)


def _texts(choices: Iterable[completion_pb2.TextChoice]) -> list[Joined]:
    found: dict[int, Joined] = {}
    for choice in choices:
        joined = found.setdefault(choice.index, Joined())
        assert not joined.finish, "nothing comes after the end"
        joined.text += choice.text
        joined.token_ids += choice.token_ids
        joined.end(choice)
    return [found[index] for index in sorted(found)]
