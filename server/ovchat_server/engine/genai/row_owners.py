"""Which sequence each row of a step's logits belongs to, derived from the tokens the step read.

genai runs first the sequences that have generated something, in the order they were added, then
prompts (scheduler.hpp). Every row is checked against what its sequence must have read: a row that
went to another one would be a wrong answer that nobody notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.genai.logits_hook import Integers


class MisattributedError(Exception):
    """A step did not read what its sequences need; the message says where."""


class RowOwner(Protocol):
    """What runs inside the pipeline: a sequence, or the beams of a beam search."""

    @property
    def prompt(self) -> Sequence[int]:
        """The prompt it was added with."""
        ...

    @property
    def length(self) -> int:
        """The number of tokens of the prompt and of the answer so far."""
        ...

    @property
    def last(self) -> int | None:
        """The last token of its answer; None before the first, and in a beam search."""
        ...

    @property
    def beams(self) -> int:
        """The number of sequences that run; 1 unless it is a beam search."""
        ...

    @property
    def echoes(self) -> bool:
        """Whether each token of its prompt makes a row, not only the last one."""
        ...

    def read_from(self, position: int) -> None:
        """Note that the step reads its prompt, from this position on."""
        ...


R = TypeVar("R", bound=RowOwner)


class Row(NamedTuple, Generic[R]):
    """The owner of a row, and the position of the token that the row's logits follow."""

    owner: R
    position: int


def row_owners(
    tokens: Integers, positions: Integers, running: Sequence[R], rows: int
) -> list[Row[R]]:
    """Return the owner of each row of a step's logits.

    Args:
        tokens: All tokens that the step reads.
        positions: Their positions in their sequences.
        running: What runs, in the order in which it was added. Not all must be in the step.
        rows: The number of rows.

    Raises:
        MisattributedError: The step read a token that no sequence needs now, or read sequences
            in another order.
    """
    owners: list[Row[R]] = []
    at = 0
    for sequence in running:
        if sequence.length > len(sequence.prompt):
            count = _generating(tokens[at:], positions[at:], sequence)
            owners += [Row(sequence, sequence.length - 1)] * count
            at += count
    for sequence in running:
        if sequence.length == len(sequence.prompt) and at < len(tokens):
            count = _prefilled(tokens[at:], positions[at:], sequence.prompt)
            if count:
                sequence.read_from(int(positions[at]))
            end = int(positions[at]) + count
            if sequence.echoes:
                owners += [Row(sequence, position) for position in range(end - count, end)]
            elif count and end == sequence.length:
                owners.append(Row(sequence, end - 1))
            at += count
    if at < len(tokens):
        raise MisattributedError(f"token {tokens[at]} at position {positions[at]} is nobody's")
    if len(owners) != rows:
        raise MisattributedError(f"{rows} rows of logits for {len(owners)} sequences")
    _check_order([row.owner for row in owners], running)
    return owners


def _generating(tokens: Integers, positions: Integers, sequence: RowOwner) -> int:
    """Return how many of the next tokens are its last ones: in a beam search one for each beam."""
    count = 0
    while (
        count < min(sequence.beams, len(tokens))
        and positions[count] == sequence.length - 1
        and sequence.last in (None, tokens[count])
    ):
        count += 1
    return count


def _prefilled(tokens: Integers, positions: Integers, prompt: Sequence[int]) -> int:
    """Return how many of the next tokens are of this prompt, whose beginning may be cached."""
    start = int(positions[0])
    expected = np.asarray(prompt[start : start + len(tokens)], dtype=np.int64)
    count = len(expected)
    same = (tokens[:count] == expected) & (positions[:count] == np.arange(start, start + count))
    return count if same.all() else int(same.argmin())


def _check_order(owners: Sequence[RowOwner], running: Sequence[RowOwner]) -> None:
    """Check that rows come in the order in which the sampler takes them (sampler.cpp).

    That is the order in which sequences were added, whatever order they ran in.

    Raises:
        MisattributedError: It would give the tokens of some to others.
    """
    order = {id(sequence): number for number, sequence in enumerate(running)}
    numbers = [order[id(owner)] for owner in owners]
    if numbers != sorted(numbers):
        raise MisattributedError("sequences do not run in the order in which they came")
