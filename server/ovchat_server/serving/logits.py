"""What a request changes of the logits: whether its model can do that, and words as tokens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.api.errors import InvalidRequestError, Violation
from ovchat_server.api.field_path import FieldPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ovchat_server.api.generation import GenerationParams
    from ovchat_server.serving.models import ServedModel
    from ovchat_server.serving.worker_pool import WorkerPool
    from ovchat_server.tokenizer.huggingface import Tokenizer

# As long as a prompt, of which each choice has a copy on its way to the engine, too.
MAX_BANNED_TOKENS = 4096


def check_logits(model: ServedModel, params: GenerationParams) -> None:
    """Refuse what the model cannot do to its logits, or tell of them.

    Raises:
        InvalidRequestError: Its device shows none, or tokens with a bias are none of the model's.
    """
    if not model.engine.status.capabilities.sees_logits:
        _refuse_blind(params)
    size = model.files.vocabulary_size
    unknown = [str(token) for token, _ in params.sampling.logit_bias if token >= size]
    if unknown:
        complaint = f"is no token: the model's vocabulary has {size} tokens."
        raise InvalidRequestError.of(
            [Violation.of(FieldPath.of("logit_bias", token), complaint) for token in unknown]
        )


async def banned_tokens(
    model: ServedModel, params: GenerationParams, workers: WorkerPool
) -> tuple[tuple[int, ...], ...]:
    """The tokens of `bad_words`, each sequence once.

    Raises:
        InvalidRequestError: They are too many.
    """
    words = params.sampling.bad_words
    if not words:
        return ()
    banned = await workers.run(partial(_tokenise, model.files.tokenizer, words))
    size = model.files.vocabulary_size
    # What the model has no token for, it never says.
    known = tuple(tokens for tokens in banned if max(tokens) < size)
    if (count := sum(map(len, known))) > MAX_BANNED_TOKENS:
        complaint = f"make {count} tokens; at most {MAX_BANNED_TOKENS} are looked for."
        raise InvalidRequestError.about("bad_words", complaint)
    return known


def _refuse_blind(params: GenerationParams) -> None:
    alternatives = [params.top_logprobs_field] if params.top_logprobs else []
    changes = map(FieldPath.of, params.sampling.logit_changes())
    if asked := dict.fromkeys((*changes, *alternatives, *params.prompt_alternatives())):
        complaint = (
            "is not supported by this model here: the plugin of the device that it runs on has "
            "no operation to see the logits."
        )
        raise InvalidRequestError.of(
            [Violation.of(field, complaint, "unsupported_parameter") for field in asked]
        )


def _tokenise(tokenizer: Tokenizer, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    found = (tokens for word in words for tokens in _spellings(tokenizer, word.lstrip()))
    return tuple(dict.fromkeys(found))


def _spellings(tokenizer: Tokenizer, word: str) -> Iterator[tuple[int, ...]]:
    """The tokens of a word where a text begins with it, and where it follows others (vLLM)."""
    first = tuple(tokenizer.encode(word))
    if not first:
        return
    yield first
    # Where the space is a token by itself, the first ones are part of these.
    later = tuple(tokenizer.encode(f" {word}"))
    if len(later) == len(first) and later[0] != first[0]:
        yield later
