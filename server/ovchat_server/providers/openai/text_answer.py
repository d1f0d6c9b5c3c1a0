"""Reading text completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.completion import ChunkChoice, Delta
from ovchat_server.providers.decoding import decode
from ovchat_server.providers.openai import wire
from ovchat_server.providers.openai.answer import OpenAiReader, refuse_error
from ovchat_server.providers.openai.logprobs import LogprobReader, prompt_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.text import TextRequest

ANSWER = msgspec.json.Decoder(wire.TextAnswer)


class TextReader(OpenAiReader):
    """Reads one text completion; see AnswerReader."""

    def __init__(self, request: TextRequest) -> None:
        """Read the answer to a request."""
        super().__init__(len(request.prompts) * request.generation.n)
        self._params = request.generation
        self._token_ids = request.return_token_ids
        self._logprobs: dict[int, LogprobReader] = {}

    def _read(self, data: bytes) -> Sequence[ChunkChoice]:
        answer = decode(data, ANSWER)
        refuse_error(data, answer)
        self._take_usage(answer.usage)
        going_on = filter(self._goes_on, answer.choices or ())
        return [chunk for choice in going_on if (chunk := self._chunk(choice))]

    def _chunk(self, choice: wire.TextChoice) -> ChunkChoice | None:
        """Return a chunk, if there is something new."""
        first = choice.index not in self._logprobs
        logprobs = self._logprobs.setdefault(choice.index, LogprobReader())
        tokens = logprobs.text(choice.logprobs) if self._params.logprobs else None
        prompt = choice.prompt_token_ids if self._token_ids else None
        reason = self._finish(choice)
        if not (first or reason or choice.text or tokens or choice.token_ids):
            return None
        return ChunkChoice(
            choice.index,
            Delta(content=choice.text or None),
            reason,
            choice.stop_reason if reason else None,
            # That of a choice's first chunk says that they were asked for.
            logprobs=tokens if first or tokens else None,
            token_ids=tuple(choice.token_ids or ()) if self._token_ids else None,
            prompt_token_ids=None if prompt is None else tuple(prompt),
            prompt_logprobs=None
            if self._params.prompt_logprobs is None
            else prompt_tokens(choice.prompt_logprobs, self._params.prompt_logprobs),
        )
