"""Conversations without their oldest messages, for where there is no room for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Role, first_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import ChatRequest, Message
    from ovchat_server.engine.contract.image_encoder import EncodedImage


def shortened(messages: Sequence[Message]) -> list[list[int]]:
    """Return which messages are left of a conversation that gets shorter and shorter.

    The instructions at the beginning and the last message of the user always are. What begins after
    what was left out is a message of the user, or else of the assistant: never the output of a
    call that was left out.
    """
    roles = [message.role for message in messages]
    leading = first_turn(messages)
    turns = [i for i, role in enumerate(roles) if role is Role.USER]
    last = turns[-1] if turns else leading - 1
    answers = [i for i, role in enumerate(roles) if role is Role.ASSISTANT and i > last + 1]
    head, end = range(leading), len(messages)
    return [
        *([*head, *range(start, end)] for start in turns if start > leading),
        *([*head, *turns[-1:], *range(start, end)] for start in answers),
    ]


def with_messages(
    request: ChatRequest, images: Sequence[EncodedImage], kept: Sequence[int]
) -> tuple[ChatRequest, list[EncodedImage]]:
    """Return a chat with some of its messages, and the images of these."""
    left = iter(images)
    of_message = [[next(left) for _ in message.images] for message in request.messages]
    messages = tuple(request.messages[index] for index in kept)
    seen = [image for index in kept for image in of_message[index]]
    return replace(request, messages=messages), seen
