"""Writing text completions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.providers.openai.parameters import add_form, add_generation, add_stream

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue
    from ovchat_server.domain.text import TextPrompt, TextRequest
    from ovchat_server.providers.body import Body


def add_text(body: Body, request: TextRequest) -> None:
    """Add all that a text completion asks for."""
    generation = request.generation
    prompts = [_prompt(prompt) for prompt in request.prompts]
    body.add(
        {
            # Some servers take one only, by itself.
            "prompt": prompts if len(prompts) > 1 else prompts[0],
            "max_tokens": generation.ending.max_tokens,
            "echo": request.echo or None,
            "logprobs": generation.top_logprobs if generation.logprobs else None,
        }
    )
    add_generation(body, generation)
    add_form(body, generation.constraint, chat=False)
    body.add_vllm(
        {
            "add_special_tokens": None if request.special_tokens else False,
            "return_token_ids": request.return_token_ids or None,
        }
    )
    add_stream(body, request.stream)


def _prompt(prompt: TextPrompt) -> JsonValue:
    return prompt if isinstance(prompt, str) else list(prompt)
