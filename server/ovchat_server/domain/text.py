"""A validated text completion request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ovchat_server.domain.generation import GenerationParams

if TYPE_CHECKING:
    from ovchat_server.domain.field_path import FieldPath
    from ovchat_server.domain.generation import StreamOptions

# Text, or tokens of the model's vocabulary.
TextPrompt: TypeAlias = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A text completion request.

    Attributes:
        prompts: The prompts, at least one; each is answered by itself.
        prompt_fields: The path of each prompt's field.
        special_tokens: Whether the tokenizer adds special tokens, such as BOS.
        echo: Whether the answer starts with the prompt.
        return_token_ids: Whether the tokens of prompt and answer are returned.
        stream: The options of the stream; None if the answer is not streamed.
        ignored: The names of unknown fields.
        accepted: The names of parameters that are accepted without effect.
        id_prefix: The prefix of the answer's id (OpenAI).
    """

    id_prefix: ClassVar[str] = "cmpl-"
    # Only chats have calls.
    call_tags: ClassVar[None] = None

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
    accepted: tuple[str, ...] = ()

    @property
    def choices(self) -> int:
        """The number of choices of the answer: those of all prompts."""
        return len(self.prompts) * self.generation.n
