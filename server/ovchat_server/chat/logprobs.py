"""Log probabilities, told together with the text of their tokens."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ovchat_server.api.completion import Alternative, PromptToken, RankedToken, TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder

# OpenAI's floor; the logarithm of 0 has no JSON.
LEAST_LOGPROB = -9999.0


class LogprobQueue:
    """Holds the log probabilities of tokens whose text is held back.

    Of tokens that a stop string cut off, none is told: they are no part of the answer.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._held: deque[TokenLogprob] = deque()

    def put(self, item: TokenLogprob) -> None:
        """Hold one, in the order of the tokens."""
        self._held.append(item)

    def take(self, passed: int, *, rest: bool) -> tuple[TokenLogprob, ...]:
        """Those of the tokens that begin before `passed` characters; with `rest` all."""
        taken = []
        while self._held and (rest or self._held[0].offset < passed):
            taken.append(self._held.popleft())
        return tuple(taken)


def token_logprob(
    decoder: TokenDecoder,
    said: tuple[int, float],
    likeliest: Sequence[tuple[int, float]],
    offset: int,
    *,
    with_itself: bool,
) -> TokenLogprob:
    """What is told of one token of an answer.

    Args:
        decoder: Whose tokens they are.
        said: The token and its log probability.
        likeliest: The same of the likeliest tokens in its place.
        offset: Where it begins in the answer, in characters.
        with_itself: It is among the alternatives even where it is none of the likeliest.
    """
    token, logprob = said
    text, data = _spoken(decoder, token)
    told = _told(logprob)
    if not (likeliest or with_itself):
        return TokenLogprob(text, told, data, offset)
    itself = Alternative(text, told, data)
    missing = with_itself
    alternatives: list[Alternative] = []
    for other, number in likeliest:
        if other == token:
            # Rounded on another way, the engine's second number of it may be a little different.
            alternatives.append(itself)
            missing = False
        else:
            spoken, others = _spoken(decoder, other)
            alternatives.append(Alternative(spoken, _told(number), others))
    if missing:
        alternatives.append(itself)
    return TokenLogprob(text, told, data, offset, tuple(alternatives))


def unscored_token(decoder: TokenDecoder, token: int) -> TokenLogprob:
    """The same of a prompt's first token: it follows nothing, so nobody knows how likely it is."""
    text, data = _spoken(decoder, token)
    return TokenLogprob(text, None, data, 0)


def prompt_token(
    decoder: TokenDecoder,
    scored: tuple[int, float, int],
    likeliest: Sequence[tuple[int, float]],
) -> PromptToken:
    """What is told of one token of a prompt.

    Args:
        decoder: Whose tokens they are.
        scored: The token, its log probability and its rank.
        likeliest: The likeliest tokens in its place, and their log probabilities.
    """
    token, logprob, rank = scored
    others: list[RankedToken] = []
    for place, (other, number) in enumerate(likeliest, 1):
        if other == token:
            # The same of both: of tokens as likely as each other each has a place of its own.
            rank, number = place, logprob  # noqa: PLW2901
        others.append(RankedToken(other, *_spoken(decoder, other), _told(number), place))
    itself = RankedToken(token, *_spoken(decoder, token), _told(logprob), rank)
    return PromptToken(itself, tuple(others))


def unscored_prompt_token(decoder: TokenDecoder, token: int) -> PromptToken:
    """The same of its first token."""
    return PromptToken(RankedToken(token, *_spoken(decoder, token)))


def _told(logprob: float) -> float:
    # Rounding in the engine may lift a certainty above itself.
    if logprob >= 0.0:
        return 0.0
    return max(LEAST_LOGPROB, logprob)


def _spoken(decoder: TokenDecoder, token: int) -> tuple[str, bytes]:
    """A token's text and bytes."""
    data = decoder.token_bytes(token)
    return data.decode(errors="replace"), data
