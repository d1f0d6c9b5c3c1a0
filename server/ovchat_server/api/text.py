"""A text completion request, validated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.api.generation import GenerationParams

if TYPE_CHECKING:
    from ovchat_server.api.field_path import FieldPath
    from ovchat_server.api.generation import StreamOptions

# Text, or tokens of the model's vocabulary.
TextPrompt: TypeAlias = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What to go on with, and how.

    Attributes:
        prompts: At least one; each is answered by itself.
        prompt_fields: The path of each.
        special_tokens: The tokenizer may add its own, such as a beginning of text.
        echo: The answer starts with the prompt.
        return_token_ids: Report the tokens of prompt and answer.
        stream: None: the whole answer at once.
        ignored: Names of the fields that are unknown here.
    """

    model: str
    prompts: tuple[TextPrompt, ...]
    # The doors have names of their own for the same prompts.
    prompt_fields: tuple[FieldPath, ...] = field(compare=False)
    generation: GenerationParams = field(default_factory=GenerationParams)
    special_tokens: bool = True
    echo: bool = False
    return_token_ids: bool = False
    stream: StreamOptions | None = None
    ignored: tuple[str, ...] = ()
