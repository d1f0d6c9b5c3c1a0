"""The kind of provider that speaks Anthropic's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ChatRequest
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.providers.anthropic.answer import MessageReader
from ovchat_server.providers.anthropic.chat_body import add_chat
from ovchat_server.providers.body import Body
from ovchat_server.providers.decoding import model_ids
from ovchat_server.providers.error_body import read_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.kind import AnswerReader, WireError, WireRequest

# The newer 2026-10-21 knows no sampling parameters, for no model.
VERSION = "2023-06-01"


class AnthropicKind:
    """Messages, as Anthropic speaks them.

    See ProviderKind.
    """

    # As many as it lists at once, of which it has by far fewer.
    models_path = "/models?limit=1000"

    def __init__(self, provider_name: str, default_max_tokens: int) -> None:
        """Speak to one provider; see ProviderSettings for what its settings are."""
        self._name = provider_name
        self._default_max_tokens = default_max_tokens

    def headers(self, key: str) -> Mapping[str, str]:
        """See ProviderKind."""
        version = {"anthropic-version": VERSION}
        return {**version, "x-api-key": key} if key else version

    def request(self, request: ChatRequest | TextRequest, model: str) -> WireRequest:
        """See ProviderKind."""
        body = Body(self._name, model)
        add_chat(body, self._chat(request), self._default_max_tokens)
        return body.request("/messages")

    def reader(self, request: ChatRequest | TextRequest) -> AnswerReader:
        """See ProviderKind."""
        return MessageReader(self._chat(request))

    def error(self, body: bytes) -> WireError:
        """See ProviderKind."""
        return read_error(body)

    def model_ids(self, body: bytes) -> Sequence[str]:
        """See ProviderKind."""
        return model_ids(body)

    def _chat(self, request: ChatRequest | TextRequest) -> ChatRequest:
        if isinstance(request, ChatRequest):
            return request
        complaint = (
            f"cannot be completed by the provider {self._name!r}, which answers chats only: "
            "send messages to /v1/chat/completions."
        )
        raise InvalidRequestError.about("prompt", complaint, "unsupported_parameter")
