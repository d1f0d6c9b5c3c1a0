"""Reading log probabilities in messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.completion import Alternative, PromptToken, RankedToken, TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat.v1 import chat_pb2


class LogprobReader:
    """Reads the log probabilities of one choice, which goes on from chunk to chunk."""

    def __init__(self) -> None:
        """Begin with the choice."""
        self._offset = 0

    def read(self, logprobs: chat_pb2.Logprobs) -> tuple[TokenLogprob, ...]:
        """Return the next tokens."""
        return tuple(map(self._token, logprobs.content))

    def _token(self, token: chat_pb2.TokenLogprob) -> TokenLogprob:
        offset = self._offset
        self._offset += len(token.token)
        return TokenLogprob(
            token.token,
            token.logprob if token.HasField("logprob") else None,
            token.bytes,
            offset,
            tuple(Alternative(top.token, top.logprob, top.bytes) for top in token.top_logprobs),
        )


def prompt_tokens(tokens: Iterable[chat_pb2.TokenLogprob]) -> tuple[PromptToken, ...]:
    """Return the tokens of a prompt."""
    return tuple(
        PromptToken(_ranked(token), tuple(map(_ranked, token.top_logprobs))) for token in tokens
    )


def _ranked(token: chat_pb2.TokenLogprob | chat_pb2.TopLogprob) -> RankedToken:
    return RankedToken(
        token.token_id,
        token.token,
        token.bytes,
        token.logprob if token.HasField("logprob") else None,
        token.rank if token.HasField("rank") else None,
    )
