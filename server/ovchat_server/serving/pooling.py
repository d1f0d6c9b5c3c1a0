"""The path of every request to a model that makes vectors of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.generation import Truncation
    from ovchat_server.engine.contract.pooling_engine import TokenizedText
    from ovchat_server.serving.pooling_files import PoolingFiles
    from ovchat_server.serving.pooling_models import PoolingModel
    from ovchat_server.serving.worker_pool import WorkerPool

# Tokenizing so many characters takes a millisecond, to which each text adds what some take.
MAX_CHARACTERS_IN_PLACE = 1 << 11
CHARACTERS_PER_TEXT = 32


@dataclass(frozen=True, slots=True)
class PoolingParams:
    """How texts are pooled.

    Attributes:
        priority: Lower goes first (vLLM).
        normalize: See PoolingEngine.pool; dimensions, too.
    """

    priority: int = 0
    normalize: bool = False
    dimensions: int = 0


@dataclass(frozen=True, slots=True)
class Pooled:
    """The vectors of texts.

    Attributes:
        vectors: In the order of the texts; see PoolingEngine.pool.
        prompt_tokens: The number of tokens of all texts.
    """

    vectors: Sequence[bytes]
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Pooler:
    """Has texts tokenized, checked and pooled.

    Attributes:
        workers: For tokenizing: megabytes of text take seconds.
        timeout: Seconds for each request; None for no limit.
    """

    workers: WorkerPool
    timeout: float | None

    async def pool(
        self,
        model: PoolingModel,
        tokenize: Callable[[], Sequence[TokenizedText]],
        params: PoolingParams,
        read: Iterable[Sized],
    ) -> Pooled:
        """Return the vectors of texts.

        Args:
            model: What makes them.
            tokenize: Returns the texts; runs in a thread if that takes long.
            params: How.
            read: What it tokenizes.

        Raises:
            ApiError: They cannot be had; see PoolingEngine.pool.
        """
        record = current_record()
        caller = current_caller(params.priority)
        async with Deadline(self.timeout).limit():
            # Before anything expensive: a request that will be refused is not tokenized.
            model.engine.check_queue(caller)
            # Short ones do not wait for the long ones of others.
            characters = sum(CHARACTERS_PER_TEXT + len(text) for text in read)
            in_place = characters <= MAX_CHARACTERS_IN_PLACE
            with record.stage("render"):
                texts = await self.workers.run(tokenize, in_place=in_place)
            record.prompt_tokens = prompt_tokens = sum(text.count for text in texts)
            vectors = await model.engine.pool(
                texts,
                caller,
                normalize=params.normalize,
                dimensions=params.dimensions,
                times=record.times,
            )
        return Pooled(vectors, prompt_tokens)


def kept_tokens(truncation: Truncation | None, max_length: int) -> int | None:
    """Return how many tokens of a text are kept; None: as many as it has."""
    if truncation is None:
        return None
    return max_length if truncation.tokens is None else min(truncation.tokens, max_length)


def check_length(files: PoolingFiles, field: FieldPath, tokens: int) -> None:
    """Refuse what is read with each text and is too long, or has no tokens.

    Raises:
        InvalidRequestError: It is.
    """
    if wrong := _wrong(files.context_length, field, tokens):
        raise InvalidRequestError.of([wrong])


def check_lengths(
    files: PoolingFiles,
    fields: Sequence[FieldPath],
    texts: Sequence[TokenizedText],
    around: int = 0,
) -> None:
    """Refuse texts that are too long, or have no tokens.

    Args:
        files: The model's.
        fields: The paths of the texts.
        texts: The texts, with what is read together with them.
        around: How many tokens of each text are another's, such as a query's.

    Raises:
        InvalidRequestError: Some are.
    """
    wrong = []
    for field, text in zip(fields, texts, strict=True):
        count = text.count
        beside = f" (with {around} of what it is read with)" if around else ""
        advice = f"{beside}; truncate_prompt_tokens cuts longer texts"
        if found := _wrong(files.context_length, field, count, advice):
            wrong.append(found)
    if wrong:
        raise InvalidRequestError.of(wrong)


def _wrong(longest: int, field: FieldPath, tokens: int, more: str = "") -> Violation | None:
    if tokens > longest:
        complaint = (
            f"is too long: {tokens} tokens > {longest} maximum{more}. This model's maximum context "
            f"length is {longest} tokens."
        )
        return Violation.of(field, complaint, ContextLengthExceededError.code)
    if not tokens:
        complaint = "has no tokens: nothing is left of it without special tokens."
        return Violation.of(field, complaint)
    return None
