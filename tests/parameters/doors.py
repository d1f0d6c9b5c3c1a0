"""Both doors, asked in OpenAI's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import grpc.aio
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from ovchat.v1 import completion_service_pb2_grpc
from tests.parameters import answers, anthropic_answers, pooling_answers, response_answers
from tests.parameters.message import message

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.grpc.conftest import Client

PATHS = {
    "chat": "/v3/chat/completions",
    "text": "/v3/completions",
    "responses": "/v3/responses",
    "messages": "/v3/messages",
    "tokenize": "/v3/tokenize",
    "detokenize": "/v3/detokenize",
    "embeddings": "/v3/embeddings",
    "rerank": "/v3/rerank",
    "score": "/v3/score",
}
# Where an answer is not one of OpenAI's older two.
WHOLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "responses": response_answers.of_response,
    "messages": anthropic_answers.of_message,
    "tokenize": answers.tokens_of_json,
    "detokenize": answers.tokens_of_json,
    **dict.fromkeys(pooling_answers.RPCS, pooling_answers.of_json),
}


class RefusedError(Exception):
    """The server said that the request is wrong; Anthropic's errors have no code."""

    def __init__(self, param: str | None, code: str | None) -> None:
        super().__init__(f"{param}: {code}")
        self.param = param or ""
        self.code = code

    def names(self, parameter: str) -> bool:
        """Whether it is about a parameter, or something in it."""
        return self.param.partition("[")[0].partition(".")[0] == parameter


class Door(Protocol):
    """A way to the server."""

    async def ask(self, endpoint: str, fields: dict[str, Any]) -> Any:
        """The answer to a request; RefusedError, or ParseError where no message can say it."""


@dataclass
class RestDoor:
    """Through Envoy. `library` is a server of its own, with other models."""

    http: httpx.AsyncClient
    library: httpx.AsyncClient

    async def post(self, endpoint: str, fields: dict[str, Any]) -> httpx.Response:
        client = self.library if _of_library(endpoint, fields) else self.http
        return await client.post(PATHS[endpoint], json=fields)

    async def ask(self, endpoint: str, fields: dict[str, Any]) -> Any:
        response = await self.post(endpoint, fields)
        if response.status_code != 200:
            raise _refused_by_rest(endpoint, response)
        if response.headers["content-type"].startswith("text/event-stream"):
            match endpoint:
                case "messages":
                    return anthropic_answers.of_message_events(response.content)
                case "responses":
                    return response_answers.of_response_events(response.text.splitlines())
            return answers.of_events(response.text.splitlines())
        return WHOLE.get(endpoint, answers.of_json)(response.json())


@dataclass
class GrpcDoor:
    """With the contract's messages."""

    client: Client
    library: Client

    async def ask(self, endpoint: str, fields: dict[str, Any]) -> Any:
        client = self.library if _of_library(endpoint, fields) else self.client
        request: Any = message(endpoint, fields)
        try:
            if endpoint in pooling_answers.RPCS:
                return await pooling_answers.of_call(client.channel, endpoint, request)
            return await self._answer(client, endpoint, request, stream=fields.get("stream"))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            raise _refused(error) from None

    async def _answer(
        self, client: Client, endpoint: str, request: Any, *, stream: bool | None
    ) -> Any:
        texts = completion_service_pb2_grpc.CompletionServiceStub(client.channel)
        match endpoint, bool(stream):
            case "chat", False:
                whole: Any = await client.chat.CreateChatCompletion(request)
                return answers.of_messages([whole], stream=False)
            case "text", False:
                whole = await texts.CreateCompletion(request)
                return answers.of_messages([whole], stream=False)
            case "chat", True:
                chunks: Any = client.chat.StreamChatCompletion(request)
                return answers.of_messages([chunk async for chunk in chunks], stream=True)
            case "text", True:
                chunks = texts.StreamCompletion(request)
                return answers.of_messages([chunk async for chunk in chunks], stream=True)
            case "tokenize", _:
                return answers.tokens_of_message(await client.tokenizer.Tokenize(request))
        detokenized = await client.tokenizer.Detokenize(request)
        return answers.Tokens(text=detokenized.prompt)


def _of_library(endpoint: str, fields: dict[str, Any]) -> bool:
    return fields.get("model") == "library" or endpoint in pooling_answers.RPCS


def _refused_by_rest(endpoint: str, response: httpx.Response) -> RefusedError:
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error"), error
    if endpoint == "messages":
        # The message begins with the field; there is nothing else that tells it.
        return RefusedError(error["message"].partition(" ")[0], None)
    assert error["param"] in error["message"]
    return RefusedError(error["param"], error["code"])


def _refused(error: grpc.aio.AioRpcError) -> RefusedError:
    status = rpc_status.from_call(error)
    assert status is not None
    info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        for kind in (info, request):
            if detail.Is(kind.DESCRIPTOR):
                detail.Unpack(kind)
    field = request.field_violations[0].field
    assert field in (error.details() or "")
    return RefusedError(field, info.reason.lower())
