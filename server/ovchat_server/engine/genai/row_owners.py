"""Which sequence each row of a step's logits belongs to, known from what the step read.

genai runs first those that have answered something, in the order that they came in, then prompts
(scheduler.hpp). Every row is checked against what its sequence must have read: a row that went to
another one would be a wrong answer that nobody sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.genai.logits_hook import Integers


class MixUpError(Exception):
    """What a step read is not what its sequences have to be read for; says where."""


class Resident(Protocol):
    """What runs inside the pipeline: a sequence, or the beams of a search."""

    @property
    def prompt(self) -> Sequence[int]:
        """What it was added with."""
        ...

    @property
    def length(self) -> int:
        """Tokens of the prompt and of its answer so far."""
        ...

    @property
    def last(self) -> int | None:
        """The last token of its answer; None: it has none yet, or several in a search."""
        ...

    @property
    def beams(self) -> int:
        """Sequences that run; 1: it is no search."""
        ...

    @property
    def echoes(self) -> bool:
        """Whether each token of its prompt makes a row, not only the last."""
        ...


R = TypeVar("R", bound=Resident)


class Row(NamedTuple, Generic[R]):
    """Whose it is, and where the token stands that it comes behind."""

    owner: R
    position: int


def row_owners(
    tokens: Integers, positions: Integers, residents: Sequence[R], rows: int
) -> list[Row[R]]:
    """Whose each row is.

    Args:
        tokens: All that the step reads.
        positions: Where they stand in their sequences.
        residents: What runs, in the order in which it was added. Not all must be in the step.
        rows: How many there are.

    Raises:
        MixUpError: Something was read that cannot be told from what runs, or in another order.
    """
    owners: list[Row[R]] = []
    at = 0
    for resident in residents:
        if resident.length > len(resident.prompt):
            count = _continued(tokens[at:], positions[at:], resident)
            owners += [Row(resident, resident.length - 1)] * count
            at += count
    for resident in residents:
        if resident.length == len(resident.prompt) and at < len(tokens):
            count = _read(tokens[at:], positions[at:], resident.prompt)
            end = int(positions[at]) + count
            if resident.echoes:
                owners += [Row(resident, position) for position in range(end - count, end)]
            elif count and end == resident.length:
                owners.append(Row(resident, end - 1))
            at += count
    if at < len(tokens):
        raise MixUpError(f"token {tokens[at]} at position {positions[at]} is nobody's")
    if len(owners) != rows:
        raise MixUpError(f"{rows} rows of logits for {len(owners)} sequences")
    _check_order([row.owner for row in owners], residents)
    return owners


def _continued(tokens: Integers, positions: Integers, resident: Resident) -> int:
    """How many of the next tokens are its last ones: of a search one for each beam."""
    count = 0
    while (
        count < min(resident.beams, len(tokens))
        and positions[count] == resident.length - 1
        and resident.last in (None, tokens[count])
    ):
        count += 1
    return count


def _read(tokens: Integers, positions: Integers, prompt: Sequence[int]) -> int:
    """How many of the next tokens are of this prompt; the first of it may be known already."""
    start = int(positions[0])
    expected = np.asarray(prompt[start : start + len(tokens)], dtype=np.int64)
    count = len(expected)
    same = (tokens[:count] == expected) & (positions[:count] == np.arange(start, start + count))
    return count if same.all() else int(same.argmin())


def _check_order(owners: Sequence[Resident], residents: Sequence[Resident]) -> None:
    """The sampler takes rows in the order in which sequences came in, whatever ran (sampler.cpp).

    Raises:
        MixUpError: It would give the tokens of some to others.
    """
    order = {id(resident): number for number, resident in enumerate(residents)}
    numbers = [order[id(owner)] for owner in owners]
    if numbers != sorted(numbers):
        raise MixUpError("sequences do not run in the order in which they came")
