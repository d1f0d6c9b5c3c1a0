"""A validated request of the Messages API: a chat, and what only this API knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.generation import StreamOptions

# What ids begin with (Anthropic).
MESSAGE = "msg_"


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """A request of the Messages API.

    Attributes:
        chat: The chat.
        shows_thinking: Whether the reasoning is returned as text; otherwise only in the signature
            of its block (`thinking.display`).
    """

    chat: ChatRequest
    shows_thinking: bool = True

    @property
    def stream(self) -> StreamOptions | None:
        """The options of the stream; None if the answer is not streamed."""
        return self.chat.stream

    @property
    def ignored(self) -> Sequence[str]:
        """The names of fields that are ignored."""
        return self.chat.ignored
