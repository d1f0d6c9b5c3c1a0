"""Writing chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import PromptEnding, Role
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.providers.anthropic.messages import add_messages
from ovchat_server.providers.anthropic.parameters import add_generation, add_output
from ovchat_server.providers.anthropic.tools import add_tools

if TYPE_CHECKING:
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.providers.body import Body


def add_chat(body: Body, request: ChatRequest, default_max_tokens: int) -> None:
    """Add all that a chat asks for.

    Args:
        body: The body.
        request: The chat.
        default_max_tokens: How many tokens the answer may have where the request does not say.
    """
    add_messages(body, request.messages)
    add_generation(body, request.generation, default_max_tokens)
    add_output(body, request)
    add_tools(body, request.tools, request.tool_choice)
    _check_ending(body, request)
    body.refuse_all(
        {
            "chat_template_kwargs": request.template_kwargs or None,
            "documents": request.documents or None,
            "echo": request.echo or None,
            "truncation": request.drops_oldest or None,
        }
    )
    if request.stream is None:
        return
    body.add({"stream": True})
    if request.stream.continuous_usage:
        # It is told at the beginning and at the end.
        body.refuse(FieldPath.of("stream_options", "continuous_usage_stats"))


def _check_ending(body: Body, request: ChatRequest) -> None:
    """Refuse an ending of the prompt that is not the API's own.

    A last message of the assistant is continued there, any other one answered.
    """
    last = len(request.messages) - 1
    continued = last >= 0 and request.messages[last].role is Role.ASSISTANT
    match request.prompt_ending:
        case PromptEnding.NOTHING:
            body.refuse("add_generation_prompt")
        case PromptEnding.FINAL_MESSAGE if not continued:
            complaint = "is only possible for a message of the assistant, if it is to be done"
            body.refuse("continue_final_message", complaint, "unsupported_value")
        case PromptEnding.ASSISTANT_TURN if continued:
            complaint = (
                "is the last message and the assistant's: ask for it to be continued, with "
                "continue_final_message; it would not be answered"
            )
            body.refuse(FieldPath.of("messages", last), complaint, "unsupported_value")
