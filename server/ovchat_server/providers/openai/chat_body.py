"""Writing chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.chat import PromptEnding
from ovchat_server.providers.openai.message_objects import add_messages
from ovchat_server.providers.openai.parameters import add_form, add_generation, add_stream
from ovchat_server.providers.openai.tool_objects import add_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.json_value import JsonObject
    from ovchat_server.providers.body import Body

# What asks for an ending of the prompt that is not the default, and what the caller called it.
ENDINGS: Mapping[PromptEnding, tuple[JsonObject, str]] = {
    PromptEnding.NOTHING: ({"add_generation_prompt": False}, "add_generation_prompt"),
    PromptEnding.FINAL_MESSAGE: (
        # vLLM's default would contradict it.
        {"continue_final_message": True, "add_generation_prompt": False},
        "continue_final_message",
    ),
}


def add_chat(body: Body, request: ChatRequest, max_tokens_field: str) -> None:
    """Add all that a chat asks for.

    Args:
        body: The body.
        request: The chat.
        max_tokens_field: The name of the parameter that bounds the answer.
    """
    generation = request.generation
    add_messages(body, request.messages)
    add_generation(body, generation)
    add_form(body, generation.constraint, chat=True)
    add_tools(body, request.tools, request.tool_choice)
    body.add(_openai(request))
    body.add({max_tokens_field: generation.ending.max_tokens})
    body.add_vllm(_vllm(request))
    if body.vllm_parameters:
        body.add({"chat_template_kwargs": request.thinking_kwargs or None})
    else:
        # Whether their models reason is not to be said, and templates are refused.
        body.ignore({"thinking": request.thinking})
        body.add_vllm({"chat_template_kwargs": request.template_kwargs or None})
    if request.prompt_ending in ENDINGS:
        body.add_vllm(*ENDINGS[request.prompt_ending])
    if body.vllm_parameters and not request.include_reasoning:
        # Others may send it: it is left out of what they answer.
        body.add({"include_reasoning": False})
    if request.drops_oldest:
        body.refuse("truncation")
    add_stream(body, request.stream)


def _openai(request: ChatRequest) -> JsonObject:
    generation = request.generation
    predicted = generation.speculation.prediction
    return {
        "logprobs": generation.logprobs or None,
        "top_logprobs": generation.top_logprobs or None,
        "reasoning_effort": request.reasoning_effort,
        "prediction": {"type": "content", "content": predicted} if predicted else None,
    }


def _vllm(request: ChatRequest) -> JsonObject:
    return {
        "thinking_token_budget": request.thinking_budget,
        "documents": list(request.documents) or None,
        "echo": request.echo or None,
    }
