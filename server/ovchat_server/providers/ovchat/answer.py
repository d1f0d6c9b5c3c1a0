"""Reading answers in messages of the contract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ovchat.v1 import chat_pb2, completion_pb2, message_pb2
from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import ChunkChoice, Delta, FinishReason, ToolCallDelta, Usage
from ovchat_server.domain.text import TextRequest
from ovchat_server.providers.kind import BadAnswerError
from ovchat_server.providers.openai.logprobs import of_content
from ovchat_server.providers.ovchat.logprobs import LogprobReader, prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import PromptToken

AnswerMessage: TypeAlias = (
    chat_pb2.ChatCompletion
    | chat_pb2.ChatCompletionChunk
    | completion_pb2.Completion
    | completion_pb2.CompletionChunk
)
ChoiceMessage: TypeAlias = chat_pb2.Choice | chat_pb2.ChunkChoice | completion_pb2.TextChoice

ROLES = {message_pb2.Role.Value(f"ROLE_{role.name}"): role for role in Role}
FINISH_REASONS = {
    chat_pb2.FinishReason.Value(f"FINISH_REASON_{reason.name}"): reason for reason in FinishReason
}


class MessageReader:
    """Reads one answer: whole, or chunk by chunk.

    Attributes:
        usage: The tokens so far.
    """

    def __init__(self, request: ChatRequest | TextRequest) -> None:
        """Read the answer to a request."""
        self.usage = Usage(0, 0)
        self._params = request.generation
        self._token_ids = isinstance(request, TextRequest) and request.return_token_ids
        self._logprobs = [LogprobReader() for _ in range(request.choices)]
        self._new = set(range(request.choices))
        self._open = set(self._new)

    @property
    def ended(self) -> bool:
        """Whether all choices have ended."""
        return not self._open

    def read(self, message: AnswerMessage) -> Iterator[ChunkChoice]:
        """Yield what is new of the choices.

        Raises:
            BadAnswerError: There are others than were asked for.
        """
        if message.HasField("usage"):
            self.usage = _usage(message.usage)
        scored = message.prompt_logprobs if isinstance(message, chat_pb2.ChatCompletion) else ()
        prompt = prompt_tokens(scored)
        for choice in message.choices:
            if choice.index >= len(self._logprobs):
                raise BadAnswerError(f"choice {choice.index} was not asked for")
            if choice.index in self._open:
                yield self._chunk(choice, prompt)

    def _chunk(self, choice: ChoiceMessage, prompt: tuple[PromptToken, ...]) -> ChunkChoice:
        """Return what is new of a choice; of a whole chat the prompt stands beside them."""
        index = choice.index
        first = index in self._new
        self._new.discard(index)
        reason = FINISH_REASONS.get(choice.finish_reason)
        if reason is not None:
            self._open.discard(index)
        tokens = None
        if choice.HasField("logprobs"):
            tokens = self._logprobs[index].read(choice.logprobs)
        chunk = ChunkChoice(index, _delta(choice), reason, _stop_reason(choice), tokens)
        scored = first and self._params.prompt_logprobs is not None
        if isinstance(choice, completion_pb2.TextChoice):
            return replace(
                chunk,
                token_ids=tuple(choice.token_ids) if self._token_ids else None,
                prompt_token_ids=tuple(choice.prompt_token_ids)
                if first and self._token_ids
                else None,
                prompt_logprobs=prompt_tokens(choice.prompt_logprobs) if scored else None,
            )
        return replace(
            chunk,
            content_logprobs=of_content(tokens or (), chunk.delta.content or ""),
            prompt_logprobs=prompt if scored else None,
        )


def _delta(choice: ChoiceMessage) -> Delta:
    match choice:
        case completion_pb2.TextChoice():
            return Delta(content=choice.text or None)
        case chat_pb2.Choice():
            said = choice.message
            return Delta(
                ROLES.get(said.role),
                "".join(part.text for part in said.content) or None,
                said.reasoning_content or None,
                tuple(
                    ToolCallDelta(index, call.id, call.function.name, call.function.arguments)
                    for index, call in enumerate(said.tool_calls)
                ),
            )
    new = choice.delta
    return Delta(
        ROLES.get(new.role),
        new.content if new.HasField("content") else None,
        new.reasoning_content if new.HasField("reasoning_content") else None,
        tuple(
            ToolCallDelta(call.index, call.id or None, call.name or None, call.arguments)
            for call in new.tool_calls
        ),
    )


def _stop_reason(choice: ChoiceMessage) -> str | int | None:
    if choice.HasField("stop_reason"):
        return choice.stop_reason
    return choice.stop_token_id if choice.HasField("stop_token_id") else None


def _usage(told: chat_pb2.Usage) -> Usage:
    prompt, completion = told.prompt_tokens_details, told.completion_tokens_details
    proposed = completion.HasField("accepted_prediction_tokens")
    return Usage(
        told.prompt_tokens,
        told.completion_tokens,
        completion.reasoning_tokens if completion.HasField("reasoning_tokens") else None,
        prompt.cached_tokens if prompt.HasField("cached_tokens") else None,
        prompt.image_tokens,
        completion.accepted_prediction_tokens if proposed else None,
        completion.rejected_prediction_tokens if proposed else None,
    )
