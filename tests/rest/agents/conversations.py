"""Conversations of an agent: with OpenAI's SDK over REST, with the contract's stubs over gRPC."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from ovchat.v1 import chat_pb2, message_pb2
from tests.grpc.requests import user
from tests.parameters.message import message
from tests.rest.agents.weather import TOOLS, Call, Case, Turn, run

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk

    from ovchat.v1 import chat_service_pb2_grpc

ASKED: dict[str, Any] = {"model": "demo", "tools": TOOLS, "temperature": 0}


class Conversation(ABC):
    """The turns so far, in a client's own form."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    @abstractmethod
    def tell(self, text: str) -> None:
        """Say something as the user."""

    @abstractmethod
    def report(self, call: Call, result: str) -> None:
        """Give a call's result."""

    @abstractmethod
    async def ask(self, **fields: Any) -> Turn:
        """Let the model speak, asked with OpenAI's `fields`; its turn is kept as it came."""


async def converse(conversation: Conversation, case: Case) -> list[Turn]:
    """The model's turns, until it calls no more."""
    conversation.tell(case.question)
    turns = [await conversation.ask(**case.fields)]
    while turns[-1].calls:
        assert len(turns) < 5, turns
        for call in turns[-1].calls:
            conversation.report(call, run(call.name, call.arguments))
        turns.append(await conversation.ask())
    return turns


class SdkConversation(Conversation):
    """With one of OpenAI's clients for Python."""

    def tell(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def report(self, call: Call, result: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def heard(self, choice: Any) -> Turn:
        """Keep the SDK's own object, which it also takes in a request."""
        self.messages.append(choice.message)
        return Turn(
            choice.finish_reason,
            choice.message.content,
            tuple(
                Call(call.id, call.function.name, call.function.arguments)
                for call in choice.message.tool_calls or []
            ),
        )


class Sync(SdkConversation):
    """Whole answers, or a stream that the SDK's helper accumulates."""

    def __init__(self, sdk: openai.OpenAI, *, stream: bool) -> None:
        super().__init__()
        self.completions, self.stream = sdk.chat.completions, stream

    async def ask(self, **fields: Any) -> Turn:
        request = {**ASKED, "messages": self.messages, **fields}
        if not self.stream:
            return self.heard(self.completions.create(**request).choices[0])
        with self.completions.stream(**request) as stream:
            return self.heard(stream.get_final_completion().choices[0])


class Async(SdkConversation):
    """Whole answers, or a stream whose chunks are joined by hand."""

    def __init__(self, sdk: openai.AsyncOpenAI, *, stream: bool) -> None:
        super().__init__()
        self.completions, self.stream = sdk.chat.completions, stream

    async def ask(self, **fields: Any) -> Turn:
        request = {**ASKED, "messages": self.messages, **fields}
        if not self.stream:
            return self.heard((await self.completions.create(**request)).choices[0])
        finish, content = "", ""
        calls: list[dict[str, Any]] = []
        async for chunk in await self.completions.create(**request, stream=True):
            [choice] = cast("ChatCompletionChunk", chunk).choices
            assert not finish, "nothing comes after the end"
            finish = choice.finish_reason or ""
            content += choice.delta.content or ""
            for delta in choice.delta.tool_calls or []:
                assert delta.function is not None
                if delta.index == len(calls):
                    function = {"name": delta.function.name, "arguments": ""}
                    calls.append({"id": delta.id, "type": delta.type, "function": function})
                calls[delta.index]["function"]["arguments"] += delta.function.arguments or ""
        said = {"role": "assistant", "content": content or None}
        self.messages.append({**said, "tool_calls": calls} if calls else said)
        return Turn(
            finish, content or None, tuple(Call(call["id"], **call["function"]) for call in calls)
        )


class Grpc(Conversation):
    """With the contract's messages, whole or streamed."""

    def __init__(self, stub: chat_service_pb2_grpc.ChatServiceAsyncStub, *, stream: bool) -> None:
        super().__init__()
        self.stub, self.stream = stub, stream

    def tell(self, text: str) -> None:
        self.messages.append(user(text))

    def report(self, call: Call, result: str) -> None:
        self.messages.append(
            message_pb2.Message(
                role=message_pb2.ROLE_TOOL,
                tool_call_id=call.id,
                content=[message_pb2.ContentPart(text=result)],
            )
        )

    async def ask(self, **fields: Any) -> Turn:
        request = cast("chat_pb2.CreateChatCompletionRequest", message("chat", ASKED | fields))
        request.messages.extend(self.messages)
        if self.stream:
            finish, said = await self._joined(request)
        else:
            choice = (await self.stub.CreateChatCompletion(request)).choices[0]
            finish, said = choice.finish_reason, choice.message
        self.messages.append(said)
        return Turn(
            chat_pb2.FinishReason.Name(finish).removeprefix("FINISH_REASON_").lower(),
            "".join(part.text for part in said.content) or None,
            tuple(
                Call(call.id, call.function.name, call.function.arguments)
                for call in said.tool_calls
            ),
        )

    async def _joined(
        self, request: chat_pb2.CreateChatCompletionRequest
    ) -> tuple[chat_pb2.FinishReason.ValueType, message_pb2.Message]:
        finish, content = chat_pb2.FINISH_REASON_UNSPECIFIED, ""
        said = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
        async for chunk in self.stub.StreamChatCompletion(request):
            [choice] = chunk.choices
            assert not finish, "nothing comes after the end"
            finish = choice.finish_reason
            content += choice.delta.content
            for delta in choice.delta.tool_calls:
                if delta.index == len(said.tool_calls):
                    said.tool_calls.add(id=delta.id).function.name = delta.name
                said.tool_calls[delta.index].function.arguments += delta.arguments
        if content:
            said.content.add(text=content)
        return finish, said
