"""Reading the answers to chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.chat import Role
from ovchat_server.domain.completion import ChunkChoice, Delta
from ovchat_server.providers.decoding import decode
from ovchat_server.providers.openai import wire
from ovchat_server.providers.openai.answer import OpenAiReader, refuse_error
from ovchat_server.providers.openai.calls import CallReader
from ovchat_server.providers.openai.logprobs import LogprobReader, of_content, prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.domain.chat import ChatRequest

ANSWER = msgspec.json.Decoder(wire.ChatAnswer)
NOTHING = wire.Said()


class ChatReader(OpenAiReader):
    """Reads the answer to one chat; see AnswerReader."""

    def __init__(self, request: ChatRequest) -> None:
        """Read the answer to a request."""
        super().__init__(request.generation.n)
        self._params = request.generation
        self._include_reasoning = request.include_reasoning
        single = not request.tool_choice.parallel
        self._calls = [CallReader(single=single) for _ in range(self._choices)]
        self._logprobs = [LogprobReader() for _ in range(self._choices)]
        self._begun = False

    def _read(self, data: bytes) -> Sequence[ChunkChoice]:
        answer = decode(data, ANSWER)
        refuse_error(data, answer)
        self._take_usage(answer.usage)
        chunks: list[ChunkChoice] = []
        if answer.choices and not self._begun:
            chunks += self._begin(answer)
        for choice in answer.choices or ():
            if self._goes_on(choice):
                chunks += self._chunk(choice)
        return chunks

    def _begin(self, answer: wire.ChatAnswer) -> Iterator[ChunkChoice]:
        """Yield the role of each choice; of all, because SDKs expect them in their order."""
        self._begun = True
        prompt = None
        if self._params.prompt_logprobs is not None:
            prompt = prompt_tokens(answer.prompt_logprobs, self._params.prompt_logprobs) or ()
        for index in range(self._choices):
            yield ChunkChoice(
                index,
                Delta(role=Role.ASSISTANT),
                logprobs=() if self._params.logprobs else None,
                prompt_logprobs=prompt,
            )

    def _chunk(self, choice: wire.ChatChoice) -> Iterator[ChunkChoice]:
        """Yield a chunk, if there is something new."""
        said = choice.message or choice.delta or NOTHING
        content, reasoning = said.answer, said.thought
        calls = self._calls[choice.index]
        tokens = self._logprobs[choice.index].chat(choice.logprobs) if self._params.logprobs else ()
        of_text = of_content(tokens, content)
        if reasoning and not self._include_reasoning:
            reasoning, tokens = "", of_text
        delta = Delta(
            content=content or None,
            reasoning_content=reasoning or None,
            tool_calls=calls.read(said.tool_calls or ()),
        )
        reason = self._finish(choice, called=calls.called)
        if reason or tokens or delta != Delta():
            yield ChunkChoice(
                choice.index,
                delta,
                reason,
                choice.stop_reason if reason else None,
                logprobs=tokens or None,
                content_logprobs=of_text,
            )
