"""Anthropic's Messages API: its requests are chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.tokenization import TokenizeRequest
from ovchat_server.serving.answer import AnswerInBlocks

if TYPE_CHECKING:
    from ovchat_server.domain.anthropic.request import MessagesRequest
    from ovchat_server.serving.completions import Completions
    from ovchat_server.serving.tokenization import Tokenization


class Messages:
    """Answers requests of the Messages API."""

    def __init__(self, completions: Completions, tokenization: Tokenization) -> None:
        """Answer chats with `completions`, and count tokens with `tokenization`."""
        self._completions = completions
        self._tokenization = tokenization

    async def answer(self, request: MessagesRequest) -> AnswerInBlocks:
        """Answer a request.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        return AnswerInBlocks(await self._completions.answer(request.chat))

    async def count(self, request: MessagesRequest) -> int:
        """Return how many tokens the prompt of a request has.

        Raises:
            ApiError: There is no such prompt; see Tokenization.tokenize.
        """
        chat = request.chat
        tokenized = await self._tokenization.tokenize(TokenizeRequest(chat.model, chat))
        return tokenized.count
