"""A validated request of the Responses API: a chat, and what only this API knows of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Message, RequestAsChat, Role, first_turn
from ovchat_server.domain.responses.item_ids import RESPONSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.domain.responses.items import Item


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool as the request has it, where the model knows it as a function.

    Attributes:
        name: Its name in the request.
        namespace: The namespace that it stands in; None for none.
        custom: Whether its input is a text instead of JSON: to the model a function with that
            text as its only argument, `input`.
    """

    name: str
    namespace: str | None = None
    custom: bool = False


@dataclass(frozen=True, slots=True)
class ResponsesRequest(RequestAsChat):
    """A request of the Responses API.

    Attributes:
        chat: It has the messages of `input` alone; see `continuing`.
        instructions: The text before all messages. It is not part of later responses (OpenAI).
        tools: The tools by the names by which the model calls them.
        referring: The items of `input`, where some are references: those are not yet among the
            messages of the chat.
        input_items: The items of `input`, each with an id, as they are listed to callers.
        repeated: The fields of the request that its response repeats, defaults filled in. Not
            `temperature` and `top_p`, which are those in use.
        previous_response_id: The response whose conversation goes on.
        store: Whether the response is kept, to be got and continued.
        summarized: Whether reasoning is returned as a summary instead of as content.
    """

    instructions: str | None = None
    tools: Mapping[str, CalledTool] = dataclasses.field(default_factory=dict)
    referring: Sequence[Item] = ()
    input_items: Sequence[JsonObject] = ()
    repeated: JsonObject = dataclasses.field(default_factory=dict)
    previous_response_id: str | None = None
    store: bool = True
    summarized: bool = False

    def continuing(self, earlier: Sequence[Message] = ()) -> ChatRequest:
        """Return the chat that the model is to answer.

        Args:
            earlier: The conversation until now, without instructions.
        """
        messages = [*earlier, *self.chat.messages]
        if self.instructions is not None:
            messages.insert(0, Message(Role.SYSTEM, (self.instructions,)))
        one = _with_one_system_message(messages)
        return dataclasses.replace(self.chat, messages=one, id_prefix=RESPONSE)


def _with_one_system_message(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Join the system messages at the beginning: many templates take one, and at the beginning."""
    leading = first_turn(messages)
    if leading < 2:  # noqa: PLR2004
        return tuple(messages)
    content = tuple(part for message in messages[:leading] for part in message.content)
    return (Message(messages[0].role, content), *messages[leading:])
