"""Writing chats as messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat.v1 import chat_pb2, message_pb2
from ovchat_server.domain.content import Image
from ovchat_server.providers.image_urls import UNKNOWN_TYPE, media_type
from ovchat_server.providers.openai.chat_body import ENDINGS
from ovchat_server.providers.openai.image_part import image_part
from ovchat_server.providers.ovchat.parameters import form, generation_fields, json_text, stream
from ovchat_server.providers.ovchat.tool_messages import tool_choice, tool_message

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest, Message
    from ovchat_server.domain.content import ContentPart
    from ovchat_server.providers.body import Body

# Of an image whose file begins like none: what it is says the file, not the type.
SOME_TYPE = "image/png"


def chat_message(body: Body, request: ChatRequest) -> chat_pb2.CreateChatCompletionRequest:
    """Return the message for a chat.

    Args:
        body: Collects its parameters, and has the model.
        request: The chat.

    Raises:
        InvalidRequestError: The contract cannot express it; every such parameter is named.
    """
    generation, kwargs = request.generation, request.thinking_kwargs
    body.add(
        {
            "max_completion_tokens": generation.ending.max_tokens,
            "logprobs": generation.logprobs or None,
            "top_logprobs": generation.top_logprobs or None,
            "prediction": generation.speculation.prediction,
            "reasoning_effort": request.reasoning_effort,
            "thinking_token_budget": request.thinking_budget,
            "include_reasoning": None if request.include_reasoning else False,
            "chat_template_kwargs": json_text(kwargs) if kwargs else None,
            "documents": [json_text(document) for document in request.documents],
            "echo": request.echo or None,
        }
    )
    if request.prompt_ending in ENDINGS:
        body.add(ENDINGS[request.prompt_ending][0])
    if request.drops_oldest:
        body.refuse("truncation")
    messages = [_message(body, message) for message in request.messages]
    fields: dict[str, Any] = generation_fields(body, generation)
    return chat_pb2.CreateChatCompletionRequest(
        **fields,
        **form(generation.constraint),
        messages=messages,
        tools=map(tool_message, request.tools),
        **tool_choice(request),
        stream_options=stream(request.stream),
    )


def _message(body: Body, message: Message) -> message_pb2.Message:
    return message_pb2.Message(
        role=message_pb2.Role.Value(f"ROLE_{message.role.name}"),
        content=[_part(body, part) for part in message.content],
        name=message.name,
        tool_calls=[
            message_pb2.ToolCall(
                id=call.id,
                function=message_pb2.FunctionCall(name=call.name, arguments=call.arguments),
            )
            for call in message.tool_calls
        ],
        tool_call_id=message.tool_call_id,
        reasoning_content=message.reasoning_content,
    )


def _part(body: Body, part: ContentPart) -> message_pb2.ContentPart:
    if not isinstance(part, Image):
        return message_pb2.ContentPart(text=part)
    detail = "low" if part.low_detail else None
    if part.url:
        described: Any = image_part(body, part)["image_url"]
        return message_pb2.ContentPart(image_url=message_pb2.ImageUrl(**described))
    kind = media_type(part.data)
    kind = SOME_TYPE if kind == UNKNOWN_TYPE else kind
    image = message_pb2.Image(data=part.data, mime_type=kind, detail=detail)
    return message_pb2.ContentPart(image=image)
