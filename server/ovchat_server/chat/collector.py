"""Collecting a choice: from its chunks to the whole, as the reader of a stream joins them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.domain.blocks import blocks_of, joined
from ovchat_server.domain.chat import Message, Role, ToolCall
from ovchat_server.domain.completion import Choice, ChunkChoice, FinishReason

if TYPE_CHECKING:
    from ovchat_server.domain.blocks import Block
    from ovchat_server.domain.completion import PromptToken, TokenLogprob, ToolCallDelta


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


class ChoiceCollector:
    """Joins the chunks of one choice, so that a unary answer equals its stream."""

    def __init__(self, *, blocks: bool = False) -> None:
        """Begin without chunks; `blocks` are only collected where they are asked for."""
        self._index = 0
        self._with_blocks = blocks
        self._blocks: list[Block] = []
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._finish_reason = FinishReason.STOP
        self._stop_reason: str | int | None = None
        self._logprobs: list[TokenLogprob] | None = None
        self._token_ids: list[int] | None = None
        self._prompt_token_ids: tuple[int, ...] | None = None
        self._prompt_logprobs: tuple[PromptToken, ...] | None = None

    def add(self, chunk: ChunkChoice) -> None:
        """Add the next chunk."""
        self._index = chunk.index
        delta = chunk.delta
        if self._with_blocks:
            self._blocks += blocks_of(chunk)
        if delta.content is not None:
            self._content.append(delta.content)
        if delta.reasoning_content is not None:
            self._reasoning.append(delta.reasoning_content)
        for call in delta.tool_calls:
            self._add_call(call)
        if chunk.logprobs is not None:
            self._logprobs = self._logprobs or []
            self._logprobs += chunk.logprobs
        if chunk.token_ids is not None:
            self._token_ids = self._token_ids or []
            self._token_ids += chunk.token_ids
        if chunk.prompt_token_ids is not None:
            self._prompt_token_ids = chunk.prompt_token_ids
        if chunk.prompt_logprobs is not None:
            self._prompt_logprobs = chunk.prompt_logprobs
        if chunk.finish_reason is not None:
            self._finish_reason = chunk.finish_reason
            self._stop_reason = chunk.stop_reason

    def _add_call(self, call: ToolCallDelta) -> None:
        if call.index not in self._calls:
            self._calls[call.index] = _Call(call.id or "", call.name or "")
        self._calls[call.index].arguments.append(call.arguments or "")

    def choice(self) -> Choice:
        """Return the whole choice."""
        calls = tuple(
            ToolCall(call.id, call.name, "".join(call.arguments)) for call in self._calls.values()
        )
        text = "".join(self._content)
        message = Message(
            role=Role.ASSISTANT,
            content=(text,) if text else (),
            tool_calls=calls,
            reasoning_content="".join(self._reasoning) or None,
        )
        return Choice(
            index=self._index,
            message=message,
            finish_reason=self._finish_reason,
            stop_reason=self._stop_reason,
            logprobs=None if self._logprobs is None else tuple(self._logprobs),
            token_ids=None if self._token_ids is None else tuple(self._token_ids),
            prompt_token_ids=self._prompt_token_ids,
            prompt_logprobs=self._prompt_logprobs,
            blocks=joined(self._blocks),
        )
