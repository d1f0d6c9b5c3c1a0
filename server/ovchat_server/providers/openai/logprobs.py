"""Reading log probabilities."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.completion import Alternative, PromptToken, RankedToken, TokenLogprob
from ovchat_server.providers.decoding import decode
from ovchat_server.providers.openai import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

CHAT = msgspec.json.Decoder(wire.ChatLogprobs | None)
TEXT = msgspec.json.Decoder(wire.TextLogprobs | None)
PROMPT = msgspec.json.Decoder(wire.PromptLogprobs)


class LogprobReader:
    """Reads the log probabilities of one choice, which goes on from chunk to chunk."""

    def __init__(self) -> None:
        """Begin with the choice."""
        self._offset = 0
        self._first_offset: int | None = None

    def chat(self, listed: msgspec.Raw) -> tuple[TokenLogprob, ...]:
        """Return the tokens of a chat.

        Raises:
            BadAnswerError: It is no list of them.
        """
        return self._tokens(decode(listed, CHAT))

    def text(self, listed: msgspec.Raw) -> tuple[TokenLogprob, ...]:
        """Return the tokens of a text.

        Raises:
            BadAnswerError: These are no lists of them.
        """
        logprobs = decode(listed, TEXT)
        if logprobs is None or logprobs.tokens is None:
            return self._tokens(logprobs)
        offsets = logprobs.text_offset or self._running(logprobs.tokens)
        if self._first_offset is None and offsets:
            # OpenAI's count the prompt, echoed or not.
            self._first_offset = offsets[0]
        return tuple(
            TokenLogprob(
                text,
                logprob,
                text.encode(),
                offset - (self._first_offset or 0),
                tuple(
                    Alternative(top, number, top.encode()) for top, number in (tops or {}).items()
                ),
            )
            for text, logprob, offset, tops in zip(
                logprobs.tokens,
                logprobs.token_logprobs or repeat(None),
                offsets,
                logprobs.top_logprobs or repeat(None),
                strict=False,
            )
        )

    def _tokens(self, logprobs: wire.ChatLogprobs | None) -> tuple[TokenLogprob, ...]:
        return tuple(self._token(token) for token in (logprobs and logprobs.content) or ())

    def _token(self, token: wire.Token) -> TokenLogprob:
        [offset] = self._running([token.token])
        return TokenLogprob(
            token.token,
            token.logprob,
            _bytes(token),
            offset,
            tuple(
                Alternative(top.token, top.logprob, _bytes(top)) for top in token.top_logprobs or ()
            ),
        )

    def _running(self, texts: Sequence[str]) -> list[int]:
        """Return where texts begin that come next."""
        offsets = []
        for text in texts:
            offsets.append(self._offset)
            self._offset += len(text)
        return offsets


def of_content(tokens: Sequence[TokenLogprob], content: str) -> tuple[TokenLogprob, ...]:
    """Return those of some tokens that have a part in a content, which ends behind reasoning."""
    text, wanted = b"".join(token.bytes for token in tokens), content.encode()
    start = text.rfind(wanted)
    if start < 0 or not wanted:
        return tuple(tokens) if wanted else ()
    found, place = [], 0
    for token in tokens:
        begin, place = place, place + len(token.bytes)
        if place > start and begin < start + len(wanted):
            found.append(token)
    return tuple(found)


def prompt_tokens(listed: msgspec.Raw, likeliest: int | None) -> tuple[PromptToken, ...] | None:
    """Return the tokens of a prompt; None where there are none.

    Args:
        listed: The tokens; the first has no log probability, and is not known.
        likeliest: How many of the most likely ones were asked for.

    Raises:
        BadAnswerError: It is no list of them.
    """
    tokens = decode(listed, PROMPT)
    if tokens is None:
        return None
    unknown = PromptToken(RankedToken(0, "", b""))
    return tuple(_prompt_token(items, likeliest or 0) if items else unknown for items in tokens)


def _prompt_token(items: dict[int, wire.RankedToken], likeliest: int) -> PromptToken:
    ranked = [
        RankedToken(
            number, text := item.decoded_token or "", text.encode(), item.logprob, item.rank
        )
        for number, item in items.items()
    ]
    # The token itself comes first, and need not come again.
    top = [item for item in ranked if item.rank is not None and item.rank <= likeliest]
    return PromptToken(ranked[0], tuple(sorted(top, key=lambda item: item.rank or 0)))


def _bytes(top: wire.Top) -> bytes:
    return top.token.encode() if top.bytes is None else bytes(top.bytes)
