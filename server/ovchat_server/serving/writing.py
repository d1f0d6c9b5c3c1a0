"""Answers as the doors write them, which may take a while."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.serving.aside import aside

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.api.completion import Chunk, Completion

Said = TypeVar("Said", "Completion", "Chunk")
Written = TypeVar("Written")

# Writing so many takes a few milliseconds where each has alternatives.
FEW_TOKENS = 100


def takes_long(said: Completion | Chunk) -> bool:
    """Whether writing it would hold others up."""
    tokens = 0
    for choice in said.choices:
        tokens += len(choice.logprobs or ()) + len(choice.prompt_logprobs or ())
    return tokens > FEW_TOKENS


async def written(write: Callable[[Said], Written], said: Said) -> Written:
    """What `write` makes of an answer, or of a part of it."""
    return await aside(partial(write, said), long=takes_long(said))
