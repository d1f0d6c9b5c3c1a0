"""Writing text completions as messages of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat.v1 import completion_pb2
from ovchat_server.providers.ovchat.parameters import form, generation_fields, stream

if TYPE_CHECKING:
    from ovchat_server.domain.text import TextPrompt, TextRequest
    from ovchat_server.providers.body import Body


def text_message(body: Body, request: TextRequest) -> completion_pb2.CreateCompletionRequest:
    """Return the message for a text completion.

    Args:
        body: Collects its parameters, and has the model.
        request: The text completion.
    """
    generation = request.generation
    body.add(
        {
            "max_tokens": generation.ending.max_tokens,
            "logprobs": generation.top_logprobs if generation.logprobs else None,
            "echo": request.echo or None,
            "add_special_tokens": None if request.special_tokens else False,
            "return_token_ids": request.return_token_ids or None,
        }
    )
    return completion_pb2.CreateCompletionRequest(
        **generation_fields(body, generation),
        **form(generation.constraint),
        prompt=map(_prompt, request.prompts),
        stream_options=stream(request.stream),
    )


def _prompt(prompt: TextPrompt) -> completion_pb2.Prompt:
    if isinstance(prompt, str):
        return completion_pb2.Prompt(text=prompt)
    return completion_pb2.Prompt(token_ids=completion_pb2.TokenIds(values=prompt))
