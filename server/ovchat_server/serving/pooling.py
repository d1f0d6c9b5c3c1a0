"""The path of every request to a model that makes vectors of texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ContextLengthExceededError, Violation
from ovchat_server.serving.caller import current_caller
from ovchat_server.serving.deadline import Deadline
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.generation import Truncation
    from ovchat_server.engine.contract.pooling_engine import TokenizedText
    from ovchat_server.serving.pooling_files import PoolingFiles
    from ovchat_server.serving.pooling_models import PoolingModel
    from ovchat_server.serving.worker_pool import WorkerPool


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
        *,
        priority: int = 0,
        normalize: bool = False,
        dimensions: int = 0,
    ) -> Pooled:
        """Return the vectors of the texts that `tokenize` returns, which runs in a thread.

        Raises:
            ApiError: They cannot be had; see PoolingEngine.pool.
        """
        current_record().model = model.id
        caller = current_caller(priority)
        async with Deadline(self.timeout).limit():
            # Before anything expensive: a request that will be refused is not tokenized.
            model.engine.check_queue(caller)
            texts = await self.workers.run(tokenize)
            prompt_tokens = sum(text.count for text in texts)
            current_record().prompt_tokens = prompt_tokens
            vectors = await model.engine.pool(
                texts, caller, normalize=normalize, dimensions=dimensions
            )
        return Pooled(vectors, prompt_tokens)


def kept_tokens(truncation: Truncation | None, max_length: int) -> int | None:
    """Return how many tokens of a text are kept; None: as many as it has."""
    if truncation is None:
        return None
    return max_length if truncation.tokens is None else min(truncation.tokens, max_length)


def check_texts(files: PoolingFiles, fields: Sequence[FieldPath], texts: Iterable[str]) -> None:
    """Refuse texts that surely are too long, without tokenizing them.

    Raises:
        ContextLengthExceededError: Some are.
    """
    fewest = files.tokenizer.fewest_tokens
    _check(files, zip(fields, map(fewest, texts), strict=True), "at least ")


def check_lengths(
    files: PoolingFiles, fields: Sequence[FieldPath], texts: Iterable[TokenizedText]
) -> None:
    """Refuse texts that are too long.

    Raises:
        ContextLengthExceededError: Some are.
    """
    _check(files, zip(fields, (text.count for text in texts), strict=True))


def _check(
    files: PoolingFiles, lengths: Iterable[tuple[FieldPath, int]], how_exact: str = ""
) -> None:
    longest, code = files.max_length, ContextLengthExceededError.code
    too_long = [
        Violation.of(
            field,
            f"is too long: {how_exact}{length} tokens > {longest} maximum. This model's maximum "
            f"context length is {longest} tokens; truncate_prompt_tokens cuts longer texts.",
            code,
        )
        for field, length in lengths
        if length > longest
    ]
    if too_long:
        raise ContextLengthExceededError.of(too_long)
