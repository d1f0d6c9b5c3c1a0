"""The typed service of responses."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ovchat.v1 import response_service_pb2, response_service_pb2_grpc
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.responses.events import ResponseEvents, spelled
from ovchat_server.responses.objects import response_object
from ovchat_server.rpc.contract_paths import contract_paths
from ovchat_server.rpc.generation import Generation
from ovchat_server.rpc.response_messages import as_told, event_message, response_message
from ovchat_server.rpc.response_request import response_request
from ovchat_server.serving.codec_threads import scored_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from ovchat.v1 import response_pb2
    from ovchat.v1.response_event_pb2 import ResponseEvent
    from ovchat_server.domain.completion import Chunk, Completion
    from ovchat_server.domain.limits import Limits
    from ovchat_server.domain.responses.request import ResponsesRequest
    from ovchat_server.rpc.middleware import Context
    from ovchat_server.serving.answer import Answer
    from ovchat_server.serving.services import Services


class ResponseServicer(response_service_pb2_grpc.ResponseServiceServicer):
    """ovchat.v1.ResponseService."""

    def __init__(self, services: Services, limits: Limits) -> None:
        """Answer requests that keep to `limits`."""
        self._responses = services.responses
        self._threads = services.threads
        self._generation = Generation(
            response_request, services.responses.answer, services.threads, limits, spelled
        )

    async def CreateResponse(
        self, request: response_pb2.CreateResponseRequest, context: Context
    ) -> response_pb2.Response:
        """Send the whole response at once."""
        async with self._generation.started(request, context, stream=False) as (read, answer):
            return await self._threads.write(
                lambda completion: _whole(read, completion), await answer.whole()
            )

    async def StreamResponse(
        self, request: response_pb2.CreateResponseRequest, context: Context
    ) -> AsyncIterator[ResponseEvent]:
        """Send the events that build the response."""
        async with (
            self._generation.started(request, context, stream=True) as (read, answer),
            contextlib.aclosing(self._events(read, answer)) as events,
        ):
            async for event in events:
                yield event

    async def _events(
        self, request: ResponsesRequest, answer: Answer
    ) -> AsyncGenerator[ResponseEvent, None]:
        events = ResponseEvents(as_told(request))

        def chunk_messages(chunk: Chunk) -> list[ResponseEvent]:
            return [*map(event_message, events.chunk(chunk))]

        def end_messages() -> list[ResponseEvent]:
            return [*map(event_message, events.end())]

        begun, tokens = False, 0
        async with contextlib.aclosing(answer.stream(request.stream or StreamOptions())) as chunks:
            async for chunk in chunks:
                if not begun:
                    for event in events.begin(answer.info):
                        yield event_message(event)
                    begun = True
                tokens += scored_tokens(chunk)
                for message in await self._threads.write(chunk_messages, chunk):
                    yield message
        # Each of them has the whole text, with the log probabilities of all its tokens.
        for message in await self._threads.write_all(end_messages, tokens):
            yield message

    async def CountInputTokens(
        self, request: response_pb2.CreateResponseRequest, context: Context
    ) -> response_service_pb2.CountInputTokensResponse:
        """Send how many tokens a prompt has."""
        read = await self._generation.read(request, stream=False)
        with contract_paths(request, spelled):
            count = await self._responses.count_input(read)
        return response_service_pb2.CountInputTokensResponse(input_tokens=count)

    async def GetResponse(
        self, request: response_service_pb2.GetResponseRequest, context: Context
    ) -> response_service_pb2.GetResponseResponse:
        """Send a response that is kept."""
        stored = self._responses.get(request.id)
        response = await self._threads.write(
            lambda completion: _whole(stored.request, completion), stored.completion
        )
        return response_service_pb2.GetResponseResponse(response=response)

    async def DeleteResponse(
        self, request: response_service_pb2.DeleteResponseRequest, context: Context
    ) -> response_service_pb2.DeleteResponseResponse:
        """Delete a response that is kept."""
        self._responses.delete(request.id)
        return response_service_pb2.DeleteResponseResponse()


def _whole(request: ResponsesRequest, completion: Completion) -> response_pb2.Response:
    return response_message(response_object(as_told(request), completion))
