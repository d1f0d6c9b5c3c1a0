"""Refuses texts that need not be tokenized to know that they are too long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError, Violation
from ovchat_server.tokenizer.long_texts import MAX_UNCUT, LongTextError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.serving.pooling_files import PoolingFiles


def check_sizes(files: PoolingFiles, texts: Iterable[tuple[FieldPath, str]]) -> None:
    """Refuse texts that surely have more tokens than a model reads.

    Raises:
        InvalidRequestError: With all of them.
    """
    longest = files.context_length
    counted = ((field, files.tokenizer.fewest_tokens(text)) for field, text in texts)
    wrong = [
        Violation.of(
            field,
            f"is too long: {tokens} tokens > {longest} maximum; truncate_prompt_tokens cuts longer "
            f"texts. This model's maximum context length is {longest} tokens.",
            ContextLengthExceededError.code,
        )
        for field, tokens in counted
        if tokens > longest
    ]
    if wrong:
        raise InvalidRequestError.of(wrong)


@contextlib.contextmanager
def cutting(fields: Sequence[FieldPath]) -> Iterator[None]:
    """Refuse by its field a text that cannot be cut, of those that are tokenized inside.

    Raises:
        ContextLengthExceededError: There is one.
    """
    try:
        yield
    except LongTextError as error:
        raise _uncut(fields[error.index], error.characters) from error


def _uncut(field: FieldPath, characters: int) -> ContextLengthExceededError:
    complaint = (
        f"is too long to be truncated: {characters} characters > {MAX_UNCUT} maximum, and no space "
        "between two words near which it could be cut."
    )
    return ContextLengthExceededError.about(field, complaint, ContextLengthExceededError.code)
