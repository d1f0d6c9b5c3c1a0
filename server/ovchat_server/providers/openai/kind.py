"""The kind of provider that speaks OpenAI's API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.domain.chat import ChatRequest
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.body import Body
from ovchat_server.providers.decoding import model_ids
from ovchat_server.providers.error_body import read_error
from ovchat_server.providers.openai.chat_answer import ChatReader
from ovchat_server.providers.openai.chat_body import add_chat
from ovchat_server.providers.openai.text_answer import TextReader
from ovchat_server.providers.openai.text_body import add_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.domain.text import TextRequest
    from ovchat_server.providers.kind import AnswerReader, WireError, WireRequest

MAX_TOKENS = FieldPath.of("max_tokens")
MAX_COMPLETION_TOKENS = FieldPath.of("max_completion_tokens")


class OpenAiKind:
    """Chat Completions and Completions, as OpenAI, vLLM, Ollama and others speak them.

    See ProviderKind.
    """

    models_path = "/models"

    def __init__(
        self,
        provider_name: str,
        max_tokens_field: str,
        vllm_parameters: bool,  # noqa: FBT001  the settings' own
    ) -> None:
        """Speak to one provider; see ProviderSettings for what its settings are."""
        self._name = provider_name
        self._max_tokens_field = max_tokens_field
        self._vllm_parameters = vllm_parameters

    def headers(self, key: str) -> Mapping[str, str]:
        """See ProviderKind."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def request(self, request: ChatRequest | TextRequest, model: str) -> WireRequest:
        """See ProviderKind."""
        body = Body(self._name, model, vllm_parameters=self._vllm_parameters)
        if isinstance(request, ChatRequest):
            add_chat(body, request, self._max_tokens_field)
            return body.request("/chat/completions")
        add_text(body, request)
        return body.request("/completions")

    def reader(self, request: ChatRequest | TextRequest) -> AnswerReader:
        """See ProviderKind."""
        return ChatReader(request) if isinstance(request, ChatRequest) else TextReader(request)

    def error(self, body: bytes) -> WireError:
        """See ProviderKind."""
        said = read_error(body)
        # What the domain calls it, and so every door its own way.
        return replace(said, param=MAX_TOKENS) if said.param == MAX_COMPLETION_TOKENS else said

    def model_ids(self, body: bytes) -> Sequence[str]:
        """See ProviderKind."""
        return model_ids(body)
