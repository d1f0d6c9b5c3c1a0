"""Completions, of chats and texts: the model that a request names answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ChatRequest
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.models import GenerativeModel
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from ovchat_server.domain.text import TextRequest
    from ovchat_server.serving.answer import ChunkedAnswer
    from ovchat_server.serving.model_registry import ModelRegistry


class Completions:
    """Answers chats and text completions."""

    def __init__(self, models: ModelRegistry, timeout: float | None) -> None:
        """Answer with `models`, each request within `timeout` seconds; None for no limit."""
        self._models = models
        self._timeout = timeout

    async def answer(self, request: ChatRequest | TextRequest) -> ChunkedAnswer:
        """Prepare the answer to a request. The model generates when the answer is read.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        deadline = Deadline(self._timeout)
        async with deadline.limit():
            record = current_record()
            record.streams = request.stream is not None
            record.params = request.generation
            if record.content:
                record.content.request = request
            operation = "chat" if isinstance(request, ChatRequest) else "text_completion"
            # mypy takes abstract classes for what cannot be asked for: its issue 4717.
            model = self._models.asked(GenerativeModel, operation, request.model)  # type: ignore[type-abstract]
            return await model.answer(request, deadline)
