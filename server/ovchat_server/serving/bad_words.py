"""`bad_words` as sequences of tokens that the answer must not hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.serving.models import TextModel
    from ovchat_server.serving.worker_pool import WorkerPool
    from ovchat_server.tokenizer.huggingface import Tokenizer

# As long as a prompt, of which each choice has a copy on its way to the engine, too.
MAX_BANNED_TOKENS = 4096


async def banned_sequences(
    model: TextModel, bad_words: Sequence[str], workers: WorkerPool
) -> tuple[tuple[int, ...], ...]:
    """Tokenize bad words, and return each sequence of tokens once.

    Raises:
        InvalidRequestError: They have too many tokens.
    """
    if not bad_words:
        return ()
    fewest = sum(map(model.files.tokenizer.fewest_tokens, bad_words))
    if fewest > MAX_BANNED_TOKENS:
        raise _too_many(fewest)
    sequences = await workers.run(partial(_tokenize, model.files.tokenizer, bad_words))
    size = model.files.vocabulary_size
    # The model never generates tokens outside its vocabulary.
    known = tuple(tokens for tokens in sequences if max(tokens) < size)
    if (count := sum(map(len, known))) > MAX_BANNED_TOKENS:
        raise _too_many(count)
    return known


def _too_many(tokens: int) -> InvalidRequestError:
    complaint = f"have {tokens} tokens in all; at most {MAX_BANNED_TOKENS} are supported."
    return InvalidRequestError.about("bad_words", complaint)


def _tokenize(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    found = (tokens for word in words for tokens in _spellings(tokenizer, word.lstrip()))
    return tuple(dict.fromkeys(found))


def _spellings(tokenizer: Tokenizer, word: str) -> Iterator[tuple[int, ...]]:
    """Yield the tokens of a word at the beginning of a text, and behind other words (vLLM)."""
    first = tuple(tokenizer.encode(word))
    if not first:
        return
    yield first
    # Where the space is a token by itself, the first ones are part of these.
    later = tuple(tokenizer.encode(f" {word}"))
    if len(later) == len(first) and later[0] != first[0]:
        yield later
