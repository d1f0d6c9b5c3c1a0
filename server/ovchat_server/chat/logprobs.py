"""Log probabilities, reported together with the text of their tokens."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from ovchat_server.domain.completion import Alternative, PromptToken, RankedToken, TokenLogprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.chat.dialects.base import Output

# OpenAI's floor; the logarithm of 0 has no JSON.
LEAST_LOGPROB = -9999.0


class LogprobQueue:
    """Holds back the log probabilities of tokens whose text is held back.

    Those of tokens that a stop string cuts off are never reported: they are not in the answer.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._held: deque[TokenLogprob] = deque()
        self._of_content: deque[TokenLogprob] = deque()
        # The tokens and the text of which nothing came yet, and whether content came last.
        self._unparsed: list[TokenLogprob] = []
        self._text = ""
        self._inside = False

    def put(self, item: TokenLogprob) -> None:
        """Add the log probability of the next token."""
        self._held.append(item)
        self._unparsed.append(item)

    def parsed(self, text: str, end: int, output: Output) -> None:
        """Note what came of the tokens until now.

        Args:
            text: The new text.
            end: Where it ends in the choice, in characters.
            output: What came of it, and of the text before it that was held back.
        """
        self._text += text
        if output.content:
            # Behind other content all of it is content; else reasoning or markup stands before.
            before = 0 if self._inside else max(self._text.rfind(output.content), 0)
            self._of_content += _from(self._unparsed, end - len(self._text) + before)
        if output.content or output.reasoning or output.calls:
            self._inside = bool(output.content) and not output.calls
            self._unparsed.clear()
            self._text = ""

    def take(self, passed: int, *, rest: bool) -> tuple[TokenLogprob, ...]:
        """Remove and return those of tokens that begin before character `passed`, or all."""
        return _taken(self._held, passed, rest=rest)

    def take_content(self, passed: int, *, rest: bool) -> tuple[TokenLogprob, ...]:
        """Remove and return as `take`, but those of the tokens that have a part in the content."""
        return _taken(self._of_content, passed, rest=rest)


def _from(tokens: Sequence[TokenLogprob], place: int) -> Sequence[TokenLogprob]:
    """Return the tokens without those that end before a place in the text."""
    for index, token in enumerate(tokens):
        following = tokens[index + 1].offset if index + 1 < len(tokens) else math.inf
        if token.offset >= place or following > place:
            return tokens[index:]
    return ()


def _taken(held: deque[TokenLogprob], passed: int, *, rest: bool) -> tuple[TokenLogprob, ...]:
    taken = []
    while held and (rest or held[0].offset < passed):
        taken.append(held.popleft())
    return tuple(taken)


def token_logprob(
    decoder: TokenDecoder,
    generated: tuple[int, float],
    likeliest: Sequence[tuple[int, float]],
    offset: int,
    *,
    with_itself: bool,
) -> TokenLogprob:
    """Describe a token of an answer with its log probability and alternatives.

    Args:
        decoder: The tokenizer of the tokens.
        generated: The token and its log probability.
        likeliest: The most likely tokens at its position and their log probabilities.
        offset: Where it begins in the answer, in characters.
        with_itself: Whether it is added to the alternatives if it is not one of the most likely.
    """
    token, logprob = generated
    text, data = _text_and_bytes(decoder, token)
    logprob = _bounded(logprob)
    if not (likeliest or with_itself):
        return TokenLogprob(text, logprob, data, offset)
    itself = Alternative(text, logprob, data)
    missing = with_itself
    alternatives: list[Alternative] = []
    for other, number in likeliest:
        if other == token:
            # The engine's second number for it may be rounded differently.
            alternatives.append(itself)
            missing = False
        else:
            other_text, other_data = _text_and_bytes(decoder, other)
            alternatives.append(Alternative(other_text, _bounded(number), other_data))
    if missing:
        alternatives.append(itself)
    return TokenLogprob(text, logprob, data, offset, tuple(alternatives))


def unscored_token(decoder: TokenDecoder, token: int) -> TokenLogprob:
    """Describe the first token of a prompt, which has no log probability as it follows nothing."""
    text, data = _text_and_bytes(decoder, token)
    return TokenLogprob(text, None, data, 0)


def prompt_token(
    decoder: TokenDecoder,
    scored: tuple[int, float, int],
    likeliest: Sequence[tuple[int, float]],
) -> PromptToken:
    """Describe a token of a prompt with its log probability, rank and alternatives.

    Args:
        decoder: The tokenizer of the tokens.
        scored: The token, its log probability and its rank.
        likeliest: The most likely tokens at its position and their log probabilities.
    """
    token, logprob, rank = scored
    others: list[RankedToken] = []
    for place, (other, number) in enumerate(likeliest, 1):
        if other == token:
            # Equally likely tokens each have a rank of their own: report the same one twice.
            rank, number = place, logprob  # noqa: PLW2901
        others.append(RankedToken(other, *_text_and_bytes(decoder, other), _bounded(number), place))
    itself = RankedToken(token, *_text_and_bytes(decoder, token), _bounded(logprob), rank)
    return PromptToken(itself, tuple(others))


def unscored_prompt_token(decoder: TokenDecoder, token: int) -> PromptToken:
    """Describe the first token of a prompt, which has neither log probability nor rank."""
    return PromptToken(RankedToken(token, *_text_and_bytes(decoder, token)))


def _bounded(logprob: float) -> float:
    # Rounding in the engine may lift a certainty above itself.
    if logprob >= 0.0:
        return 0.0
    return max(LEAST_LOGPROB, logprob)


def _text_and_bytes(decoder: TokenDecoder, token: int) -> tuple[str, bytes]:
    data = decoder.token_bytes(token)
    return data.decode(errors="replace"), data
