"""What the folder of a model that generates text says about the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.chat.template import ChatTemplate, load_chat_template
from ovchat_server.chat.template_files import ChatTemplateError
from ovchat_server.serving.model_folder import (
    ModelFilesError,
    ModelFolder,
    first_integer,
    integer,
    number,
)
from ovchat_server.serving.model_path import MODEL, model_graph
from ovchat_server.serving.tokenizer_description import describe_tokenizer
from ovchat_server.tokenizer.huggingface import Tokenizer, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ovchat_server.domain.json_value import JsonObject

# Where architectures say how long their context is, in OVMS's order.
CONTEXT_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "seq_len",
    "seq_length",
    "n_ctx",
    "sliding_window",
)
# Where families say which token they read as an image's.
IMAGE_TOKEN_KEYS = ("image_token_id", "image_token_index")


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """From `generation_config.json`: what vLLM takes from it. None where it is silent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = None
    num_assistant_tokens: int | None = None
    max_ngram_size: int | None = None
    assistant_confidence_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's folder, read.

    Attributes:
        created: When the weights were written, in seconds since 1970 (UTC).
        digest: Changes when a file changes that may change answers.
        context_length: Most tokens of prompt and answer that the model was made for.
        end_tokens: Tokens that end an answer.
        vocabulary_size: Tokens are less than this.
        tokenizer_info: What the tokenizer is configured with.
        image_token: What stands for each token of an image in a prompt.
    """

    created: int
    digest: str
    context_length: int
    end_tokens: tuple[int, ...]
    vocabulary_size: int
    defaults: GenerationDefaults
    template: ChatTemplate
    tokenizer: Tokenizer
    tokenizer_info: JsonObject
    image_token: int = 0


def read_model_files(directory: Path) -> ModelFiles:
    """Read a model's folder.

    Raises:
        ModelFilesError: It is missing, or lacks something.
    """
    folder = ModelFolder(directory)
    model = model_graph(directory) or folder.file(MODEL)
    try:
        tokenizer = Tokenizer.load(directory)
        template = load_chat_template(directory)
    except (TokenizerError, ChatTemplateError) as error:
        raise ModelFilesError(f"{error}, in {directory}") from error
    config = folder.read_json("config.json")
    generation = folder.read_json("generation_config.json")
    vocabulary_size = first_integer(config, ("vocab_size",)) or tokenizer.vocabulary_size
    image_token = first_integer(config, IMAGE_TOKEN_KEYS) or 0
    return ModelFiles(
        created=int(model.stat().st_mtime),
        digest=folder.digest(),
        context_length=_context_length(config, directory),
        end_tokens=_end_tokens(generation, template, tokenizer),
        vocabulary_size=vocabulary_size,
        defaults=GenerationDefaults(
            temperature=number(generation, "temperature"),
            top_p=number(generation, "top_p"),
            top_k=integer(generation, "top_k"),
            min_p=number(generation, "min_p"),
            repetition_penalty=number(generation, "repetition_penalty"),
            max_tokens=integer(generation, "max_new_tokens"),
            num_assistant_tokens=integer(generation, "num_assistant_tokens"),
            max_ngram_size=integer(generation, "max_ngram_size"),
            assistant_confidence_threshold=number(generation, "assistant_confidence_threshold"),
        ),
        template=template,
        tokenizer=tokenizer,
        tokenizer_info=describe_tokenizer(
            folder.read_json("tokenizer_config.json"),
            template.special_tokens,
            template.default_source,
        ),
        image_token=image_token if image_token < vocabulary_size else 0,
    )


def _context_length(config: Mapping[str, Any], directory: Path) -> int:
    length = first_integer(config, CONTEXT_LENGTH_KEYS)
    if length is None:
        raise ModelFilesError(f"config.json does not say the context length, in {directory}")
    return length


def _end_tokens(
    generation: Mapping[str, Any], template: ChatTemplate, tokenizer: Tokenizer
) -> tuple[int, ...]:
    """Return all tokens that end an answer: chat models end turns and texts with different ones."""
    value = generation.get("eos_token_id")
    listed = value if isinstance(value, list) else [value]
    tokens = {token for token in listed if isinstance(token, int)}
    if template.end_token is not None:
        token = tokenizer.token(template.end_token)
        if token is not None:
            tokens.add(token)
    return tuple(sorted(tokens))
