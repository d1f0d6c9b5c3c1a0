"""The Responses API: chats that go on from earlier responses, which are kept in memory."""

from __future__ import annotations

import contextlib
import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.domain.completion import Completion
from ovchat_server.domain.content import Image
from ovchat_server.domain.errors import InvalidRequestError, ResponseNotFoundError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.responses.conversation import said
from ovchat_server.domain.tokenization import TokenizeRequest
from ovchat_server.serving.answer import AnswerInBlocks
from ovchat_server.serving.item_references import resolved
from ovchat_server.serving.record import current_record
from ovchat_server.serving.stored_responses import StoredResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

    from ovchat_server.domain.chat import Message
    from ovchat_server.domain.completion import Chunk
    from ovchat_server.domain.generation import StreamOptions
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.serving.answer import ChunkedAnswer
    from ovchat_server.serving.completions import Completions
    from ovchat_server.serving.stored_responses import StoredResponses
    from ovchat_server.serving.tokenization import Tokenization

PREVIOUS = FieldPath.of("previous_response_id")


class Responses:
    """Answers requests of the Responses API, and keeps the responses for those who made them."""

    def __init__(
        self,
        completions: Completions,
        tokenization: Tokenization,
        stored: StoredResponses,
        limits: Limits,
        max_request_bytes: int,
    ) -> None:
        """Answer with `completions`, and keep responses in `stored`.

        Args:
            completions: Answers chats.
            tokenization: Counts tokens.
            stored: The responses of all callers.
            limits: Those of requests: a conversation that goes on is within them, too.
            max_request_bytes: So is it within this: it is read as if all of it had been sent.
        """
        self._completions = completions
        self._tokenization = tokenization
        self._stored = stored
        self._limits = limits
        self._max_request_bytes = max_request_bytes

    async def answer(self, request: ResponsesRequest) -> ResponsesAnswer:
        """Answer a request. It is kept once its answer was read to the end.

        Raises:
            ApiError: It cannot be answered; see the subclasses.
        """
        request = self._resolved(request)
        if not request.chat.messages:
            complaint = "must hold something to answer, such as a message or the output of a call."
            raise InvalidRequestError.about("input", complaint)
        earlier = self._earlier(request)
        answer = await self._completions.answer(request.continuing(earlier))
        conversation = (*earlier, *map(_as_earlier, request.chat.messages))
        if not (request.store and self._stored.enabled):
            return ResponsesAnswer(answer, None)
        return ResponsesAnswer(answer, partial(self._keep, _owner(), request, conversation))

    async def count_input(self, request: ResponsesRequest) -> int:
        """Return how many tokens the prompt of a request has.

        Raises:
            ApiError: There is no such prompt; see Tokenization.tokenize.
        """
        request = self._resolved(request)
        chat = request.continuing(self._earlier(request))
        tokenized = await self._tokenization.tokenize(TokenizeRequest(chat.model, chat))
        return tokenized.count

    def get(self, response_id: str) -> StoredResponse:
        """Return a response of the caller's.

        Raises:
            ResponseNotFoundError: The caller has none of that id.
        """
        found = self._stored.get(_owner(), response_id)
        if found is None:
            raise ResponseNotFoundError.of(response_id)
        return found

    def delete(self, response_id: str) -> None:
        """Delete a response of the caller's.

        Raises:
            ResponseNotFoundError: The caller has none of that id.
        """
        if not self._stored.delete(_owner(), response_id):
            raise ResponseNotFoundError.of(response_id)

    def _resolved(self, request: ResponsesRequest) -> ResponsesRequest:
        find = partial(self._stored.get, _owner())
        return resolved(request, find, self._max_request_bytes)

    def _earlier(self, request: ResponsesRequest) -> tuple[Message, ...]:
        """Return the conversation that a request continues."""
        if (previous := request.previous_response_id) is None:
            return ()
        found = self._stored.get(_owner(), previous)
        if found is None:
            raise ResponseNotFoundError.of_previous(previous, enabled=self._stored.enabled)
        self._check((*found.conversation, *request.chat.messages))
        return found.conversation

    def _check(self, messages: Sequence[Message]) -> None:
        """Refuse a conversation that is more than a request may hold."""
        limits, largest, size = self._limits, self._max_request_bytes, _size(messages)
        parts = sum(len(message.content) + len(message.tool_calls) for message in messages)
        for most, found, unit in (
            (limits.max_messages, len(messages), "messages"),
            (limits.max_total_parts, parts, "parts"),
            (largest, size, "bytes"),
        ):
            if found > most:
                complaint = f"must lead to at most {most} {unit} with those of input, got {found}."
                raise InvalidRequestError.about(PREVIOUS, complaint)

    async def _keep(
        self,
        owner: str,
        request: ResponsesRequest,
        conversation: tuple[Message, ...],
        completion: Completion,
    ) -> None:
        whole = (*conversation, said(completion.choices[0].message))
        await self._stored.put(owner, StoredResponse(request, completion, whole))


class ResponsesAnswer(AnswerInBlocks):
    """An answer of one choice that is handed on when it is complete; see Answer."""

    def __init__(
        self, answer: ChunkedAnswer, keep: Callable[[Completion], Awaitable[None]] | None
    ) -> None:
        """Answer with `answer`; `keep` gets the whole of it, before the reader has the end."""
        super().__init__(answer)
        self._keep = keep

    async def whole(self) -> Completion:
        """Return the whole answer; see Answer."""
        completion = await super().whole()
        if self._keep is not None:
            await self._keep(completion)
        return completion

    def stream(self, options: StreamOptions) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as it is generated; see Answer."""
        if self._keep is None:
            return super().stream(options)
        return self._kept(self._keep, options)

    async def _kept(
        self, keep: Callable[[Completion], Awaitable[None]], options: StreamOptions
    ) -> AsyncGenerator[Chunk, None]:
        collector = ChoiceCollector(blocks=True)
        # The last chunk then tells what the whole has besides its choice.
        with_usage = dataclasses.replace(options, include_usage=True)
        async with contextlib.aclosing(self._answer.stream(with_usage)) as chunks:
            async for chunk in chunks:
                for choice in chunk.choices:
                    collector.add(choice)
                if chunk.usage is not None and chunk.ended is not None:
                    choices = (collector.choice(),)
                    await keep(Completion(chunk.info, choices, chunk.usage, chunk.ended))
                    if not options.include_usage:
                        break
                yield chunk


def _owner() -> str:
    return current_record().caller.name


def _size(messages: Iterable[Message]) -> int:
    """Count the bytes of the texts and images of messages."""
    size = 0
    for message in messages:
        texts = [part for part in message.content if isinstance(part, str)]
        texts += [image.url for image in message.images]
        texts += [call.arguments for call in message.tool_calls]
        texts.append(message.reasoning_content or "")
        size += sum(len(text.encode()) for text in texts)
        size += sum(len(image.data) for image in message.images)
    return size


def _as_earlier(message: Message) -> Message:
    """Have errors about images name the field that brings them into later requests."""
    if not message.images:
        return message
    content = tuple(
        dataclasses.replace(part, field=PREVIOUS) if isinstance(part, Image) else part
        for part in message.content
    )
    return dataclasses.replace(message, content=content)
