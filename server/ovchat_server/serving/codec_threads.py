"""Reading requests and writing answers, for the doors: large ones in threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.completion import Chunk, Completion
    from ovchat_server.serving.worker_pool import WorkerPool

Request = TypeVar("Request")
Answer = TypeVar("Answer", "Completion", "Chunk")
Encoded = TypeVar("Encoded")

# What so many bytes hold may take 60 ms to read, where most of it is a schema.
MAX_BYTES_IN_PLACE: Final = 1 << 11
# Writing so many takes a few milliseconds where each has alternatives.
MAX_TOKENS_IN_PLACE: Final = 100


@dataclass(frozen=True, slots=True)
class CodecThreads:
    """Runs the readers and writers of the doors, in threads where that takes long.

    Attributes:
        readers: For requests, which may take seconds.
        writers: For answers.
    """

    readers: WorkerPool
    writers: WorkerPool

    async def read(self, read: Callable[[], Request], size: int) -> Request:
        """Return what `read` makes of a message or body of `size` bytes; raise what it raises."""
        return await self.readers.run(read, in_place=size <= MAX_BYTES_IN_PLACE)

    async def write(self, write: Callable[[Answer], Encoded], answer: Answer) -> Encoded:
        """Return what `write` makes of an answer, or of a part of it."""
        in_place = _logprobs(answer) <= MAX_TOKENS_IN_PLACE
        return await self.writers.run(partial(write, answer), in_place=in_place)


def _logprobs(answer: Completion | Chunk) -> int:
    """Count the tokens whose log probabilities an answer holds."""
    tokens = 0
    for choice in answer.choices:
        tokens += len(choice.logprobs or ()) + len(choice.prompt_logprobs or ())
    return tokens
