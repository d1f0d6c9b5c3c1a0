"""A validated request of the Messages API: a chat, and what only this API knows of it."""

from __future__ import annotations

from dataclasses import dataclass

from ovchat_server.domain.chat import RequestAsChat

# What ids begin with (Anthropic).
MESSAGE = "msg_"


@dataclass(frozen=True, slots=True)
class MessagesRequest(RequestAsChat):
    """A request of the Messages API.

    Attributes:
        shows_thinking: Whether the reasoning is returned as text; otherwise only in the signature
            of its block (`thinking.display`).
    """

    shows_thinking: bool = True
