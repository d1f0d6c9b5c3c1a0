"""Runs the doors' decoding of requests and encoding of answers, in threads if they are large."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.domain.completion import Chunk, Completion
    from ovchat_server.serving.worker_pool import WorkerPool

Request = TypeVar("Request")
Answer = TypeVar("Answer", "Completion", "Chunk")
Encoded = TypeVar("Encoded")

# Reading so many bytes may take 60 ms, if most of them are a schema.
MAX_BYTES_IN_PLACE: Final = 1 << 11
# Writing so many tokens takes a few milliseconds, if each has alternatives.
MAX_TOKENS_IN_PLACE: Final = 100


@dataclass(frozen=True, slots=True)
class CodecThreads:
    """Runs readers of requests and writers of answers, in threads if that takes long.

    Attributes:
        readers: The threads for reading requests, which may take seconds.
        writers: The threads for writing answers.
    """

    readers: WorkerPool
    writers: WorkerPool

    async def read(self, read: Callable[[], Request], size: int) -> Request:
        """Return the result of `read`, which reads a message or body of `size` bytes."""
        with current_record().stage("read"):
            return await self.readers.run(read, in_place=size <= MAX_BYTES_IN_PLACE)

    async def write(self, write: Callable[[Answer], Encoded], answer: Answer) -> Encoded:
        """Return an answer, or a chunk of it, as `write` encodes it."""
        return await self.write_all(partial(write, answer), scored_tokens(answer))

    async def write_all(self, write: Callable[[], Encoded], tokens: int) -> Encoded:
        """Return what `write` encodes: as many tokens with log probabilities."""
        return await self.writers.run(write, in_place=tokens <= MAX_TOKENS_IN_PLACE)


def scored_tokens(answer: Completion | Chunk) -> int:
    """Count the tokens whose log probabilities an answer holds."""
    tokens = 0
    for choice in answer.choices:
        tokens += len(choice.logprobs or ()) + len(choice.prompt_logprobs or ())
    return tokens
