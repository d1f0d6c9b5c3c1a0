"""What the typed services that generate tokens have in common."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from ovchat_server.header_text import IGNORED, UNENFORCED, name_list, path_list
from ovchat_server.rpc.contract_paths import contract_paths, with_token_ids

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from google.protobuf.message import Message

    from ovchat_server.domain.field_path import Spelling
    from ovchat_server.domain.limits import Limits
    from ovchat_server.rpc.middleware import Context
    from ovchat_server.serving.answer import Answer
    from ovchat_server.serving.codec_threads import CodecThreads


Request = TypeVar("Request")
AnswerT = TypeVar("AnswerT", bound="Answer")


@dataclass(frozen=True, slots=True)
class Generation(Generic[Request, AnswerT]):
    """Reads a request for generated tokens and starts to answer it.

    Attributes:
        convert: Makes the request of a message.
        answer: Answers a request.
        threads: Read large messages.
        limits: What requests may hold.
        spelling: See contract_paths.
    """

    convert: Callable[..., Request]
    answer: Callable[[Request], Awaitable[AnswerT]]
    threads: CodecThreads
    limits: Limits
    spelling: Spelling = with_token_ids

    async def read(self, message: Message, *, stream: bool) -> Request:
        """Return the request in a message.

        Raises:
            InvalidRequestError: With every fault found, and the contract's paths.
        """
        convert = partial(self.convert, message, stream=stream, limits=self.limits)
        return await self.threads.read(convert, message.ByteSize())

    @contextlib.asynccontextmanager
    async def started(
        self, message: Message, context: Context, *, stream: bool
    ) -> AsyncGenerator[tuple[Request, AnswerT], None]:
        """Hand over the request in a message and its answer, which is read inside.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        request = await self.read(message, stream=stream)
        with contract_paths(message, self.spelling):
            answer = await self.answer(request)
            yield request, answer
        # Which model answers may not be known before.
        hints = []
        if answer.ignored:
            hints.append((IGNORED, name_list(answer.ignored)))
        if answer.unenforced:
            hints.append((UNENFORCED, path_list(answer.unenforced)))
        if hints:
            # Not initial: that would keep Envoy from giving an error its HTTP status.
            context.set_trailing_metadata((*context.trailing_metadata(), *hints))
