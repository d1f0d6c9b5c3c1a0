"""Answers of an ovchat: chunks as they may come, to be written in an API and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import (
    Alternative,
    ChunkChoice,
    CompletionInfo,
    Delta,
    FinishReason,
    PromptToken,
    RankedToken,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from tests.parameters.endpoints import WEATHER
from tests.unit.readers import read_chat, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest

INFO = CompletionInfo("chatcmpl-1", 1_700_000_000, "demo", "fp")
USAGE = Usage(11, 7, 3, 2, 5, 1, 4)
ROLE = Delta(role=Role.ASSISTANT)
TOOLS = {"tools": [WEATHER]}


def token(text: str, offset: int, *alternatives: tuple[str, float]) -> TokenLogprob:
    tops = tuple(Alternative(top, number, top.encode()) for top, number in alternatives)
    return TokenLogprob(text, -0.5, text.encode(), offset, tops)


def call(index: int, arguments: str, name: str | None = None) -> Delta:
    identifier = name and f"call_{name}"
    return Delta(tool_calls=(ToolCallDelta(index, identifier, name, arguments),))


HM, SO = token("Hm", 0, ("Hm", -0.5), ("Ah", -1.5)), token("So", 2)
SPLIT = (
    TokenLogprob("\N{REPLACEMENT CHARACTER}", -1.0, b"\xc3", 0),
    TokenLogprob("\N{REPLACEMENT CHARACTER}", -2.0, b"\xa9", 1),
)
PROMPT = (
    # Nothing is said of the first one.
    PromptToken(RankedToken(0, "", b"")),
    PromptToken(
        RankedToken(7, "a", b"a", -3.0, 9),
        (RankedToken(8, "b", b"b", -0.1, 1), RankedToken(9, "c", b"c", -2.0, 2)),
    ),
    PromptToken(
        RankedToken(9, "c", b"c", -2.0, 2),
        (RankedToken(8, "b", b"b", -0.1, 1), RankedToken(9, "c", b"c", -2.0, 2)),
    ),
)
CHATS: dict[str, tuple[ChatRequest, Sequence[ChunkChoice]]] = {
    "several choices": (
        read_chat(n=2),
        [
            ChunkChoice(0, ROLE),
            ChunkChoice(1, ROLE),
            ChunkChoice(1, Delta(content="Hi")),
            ChunkChoice(0, Delta(content="Good")),
            ChunkChoice(1, Delta(), FinishReason.LENGTH),
            ChunkChoice(0, Delta(content=" day")),
            ChunkChoice(0, Delta(), FinishReason.STOP, "!"),
        ],
    ),
    "reasoning and calls": (
        read_chat(**TOOLS),
        [
            ChunkChoice(0, ROLE),
            ChunkChoice(0, Delta(reasoning_content="Hm")),
            ChunkChoice(0, Delta(content="Look:")),
            ChunkChoice(0, call(0, "", "one")),
            ChunkChoice(0, call(0, '{"city"')),
            ChunkChoice(0, call(0, ': "Rome"}')),
            ChunkChoice(0, call(1, "{}", "two")),
            ChunkChoice(0, Delta(), FinishReason.TOOL_CALLS),
        ],
    ),
    "log probabilities": (
        read_chat(logprobs=True, top_logprobs=2),
        [
            ChunkChoice(0, ROLE, logprobs=()),
            ChunkChoice(0, Delta(reasoning_content="Hm"), logprobs=(HM,)),
            ChunkChoice(0, Delta(content="So"), logprobs=(SO,), content_logprobs=(SO,)),
            ChunkChoice(0, Delta(), FinishReason.STOP, 7),
        ],
    ),
    "a character of two tokens": (
        read_chat(logprobs=True),
        [
            ChunkChoice(0, ROLE, logprobs=()),
            ChunkChoice(0, Delta(content="\xe9"), logprobs=SPLIT, content_logprobs=SPLIT),
            ChunkChoice(0, Delta(), FinishReason.CONTENT_FILTER),
        ],
    ),
}
TEXTS: dict[str, tuple[TextRequest, Sequence[ChunkChoice]]] = {
    "prompts and choices": (
        read_text(prompt=["a", "b"], n=2),
        [
            ChunkChoice(2, Delta(content="x")),
            *(ChunkChoice(index, Delta(), FinishReason.LENGTH) for index in range(4)),
        ],
    ),
    "an echo without tokens": (
        read_text(logprobs=0, echo=True),
        [
            ChunkChoice(0, Delta(content="Hi"), logprobs=()),
            ChunkChoice(0, Delta(), FinishReason.LENGTH),
        ],
    ),
    "tokens": (
        read_text(logprobs=1, return_token_ids=True, echo=True),
        [
            ChunkChoice(
                0,
                Delta(content="Hm"),
                logprobs=(TokenLogprob("Hm", None, b"Hm", 0),),
                token_ids=(),
                prompt_token_ids=(3,),
            ),
            ChunkChoice(
                0, Delta(content="So"), logprobs=(token("So", 2, ("So", -0.5)),), token_ids=(5,)
            ),
            ChunkChoice(0, Delta(), FinishReason.STOP, 6, token_ids=(6,)),
        ],
    ),
}
PROMPTS: dict[str, tuple[ChatRequest | TextRequest, ChunkChoice]] = {
    "chat": (read_chat(prompt_logprobs=2), ChunkChoice(0, ROLE, prompt_logprobs=PROMPT)),
    "text": (read_text(prompt_logprobs=2), ChunkChoice(0, Delta(), prompt_logprobs=PROMPT)),
}


def count_of(chunks: Iterable[ChunkChoice]) -> int:
    return max(chunk.index for chunk in chunks) + 1
