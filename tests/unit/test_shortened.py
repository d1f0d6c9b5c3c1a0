"""What is left of a conversation that gets shorter."""

from __future__ import annotations

import pytest

from ovchat_server.domain.chat import ChatRequest, Message, Role
from ovchat_server.domain.content import Image
from ovchat_server.engine.contract.image_encoder import EncodedImage
from ovchat_server.serving.shortened import shortened, with_messages

ROLES = {"s": Role.SYSTEM, "u": Role.USER, "a": Role.ASSISTANT, "t": Role.TOOL}


def conversation(roles: str) -> list[Message]:
    return [Message(ROLES[role], (str(index),)) for index, role in enumerate(roles)]


@pytest.mark.parametrize(
    ("roles", "left"),
    [
        ("u", []),
        ("su", []),
        ("uau", ["2"]),
        ("suatatuau", ["0678", "08"]),
        # An agent at work: its last question stays.
        ("suaususatat", ["03456789A", "056789A", "05789A", "059A"]),
        ("suatatat", ["014567", "0167"]),
        # What a model is to go on with, without a question.
        ("aata", ["123", "3"]),
    ],
)
def test_the_oldest_messages_are_left_out_first(roles: str, left: list[str]) -> None:
    kept = ["".join(f"{index:X}" for index in item) for item in shortened(conversation(roles))]
    assert kept == left


def test_images_are_left_out_with_their_messages() -> None:
    contents = (Image("a"), Image("b")), (Image("c"),)
    messages = tuple(Message(Role.USER, content) for content in contents)
    images = [EncodedImage(number, number, number, "") for number in range(3)]

    chat, seen = with_messages(ChatRequest("demo", messages), images, [1])

    assert (chat.messages, seen) == (messages[1:], images[2:])
