"""The vocabulary of a model, as a bound of token ids that callers send."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import InvalidRequestError, Violation
from ovchat_server.domain.reader import MAX_VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.tokenizer.huggingface import Tokenizer


def check_tokens(tokenizer: Tokenizer, field: FieldPath, tokens: Sequence[int]) -> None:
    """Refuse ids that are no tokens of a model.

    Args:
        tokenizer: The model's.
        field: The path of the ids.
        tokens: The ids.

    Raises:
        InvalidRequestError: Some are none.
    """
    size = tokenizer.vocabulary_size
    unknown = (index for index, token in enumerate(tokens) if not 0 <= token < size)
    if reported := list(islice(unknown, MAX_VIOLATIONS)):
        complaint = f"must be a token of the model, between 0 and {size - 1}."
        raise InvalidRequestError.of([Violation.of(field / index, complaint) for index in reported])
