"""What a model's folder says about the model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ovchat_server.chat.template import ChatTemplate, load_chat_template
from ovchat_server.chat.template_files import ChatTemplateError
from ovchat_server.tokenizer.huggingface import Tokenizer, TokenizerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MODEL = "openvino_model.xml"
WEIGHTS = "openvino_model.bin"
# Where architectures say how long their context is, in OVMS's order.
CONTEXT_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "seq_len",
    "seq_length",
    "n_ctx",
    "sliding_window",
)
MODEL_FILE_SUFFIXES = frozenset({".xml", ".bin", ".json", ".jinja"})
DIGEST_SPAN = 1 << 20


class ModelFilesError(Exception):
    """A folder is not a model that can be served; the message says why and which."""


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """From `generation_config.json`: what vLLM takes from it. None where it is silent."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's folder, read.

    Attributes:
        created: When the weights were written, in seconds since 1970 (UTC).
        digest: Changes when a file changes that may change answers.
        context_length: Most tokens of prompt and answer that the model was made for.
        end_tokens: Tokens that end an answer.
        vocabulary_size: Tokens are less than this.
    """

    created: int
    digest: str
    context_length: int
    end_tokens: tuple[int, ...]
    vocabulary_size: int
    defaults: GenerationDefaults
    template: ChatTemplate
    tokenizer: Tokenizer


def read_model_files(directory: Path) -> ModelFiles:
    """Read a model's folder; the weights are left to the engine.

    Raises:
        ModelFilesError: It is missing, or lacks something.
    """
    if not directory.is_dir():
        raise ModelFilesError(f"there is no folder {directory}")
    model = directory / MODEL
    for name in (MODEL, WEIGHTS):
        if not (directory / name).is_file():
            raise ModelFilesError(f"there is no {name} in {directory}")
    try:
        tokenizer = Tokenizer.load(directory)
        template = load_chat_template(directory)
    except (TokenizerError, ChatTemplateError) as error:
        raise ModelFilesError(f"{error}, in {directory}") from error
    config = _read_json(directory / "config.json")
    generation = _read_json(directory / "generation_config.json")
    return ModelFiles(
        created=int(model.stat().st_mtime),
        digest=_digest(directory),
        context_length=_context_length(config, directory),
        end_tokens=_end_tokens(generation, template, tokenizer),
        vocabulary_size=_first_integer(config, ("vocab_size",)) or tokenizer.vocabulary_size,
        defaults=GenerationDefaults(
            temperature=_number(generation, "temperature"),
            top_p=_number(generation, "top_p"),
            top_k=_integer(generation, "top_k"),
            min_p=_number(generation, "min_p"),
            repetition_penalty=_number(generation, "repetition_penalty"),
            max_tokens=_integer(generation, "max_new_tokens"),
        ),
        template=template,
        tokenizer=tokenizer,
    )


def _context_length(config: Mapping[str, Any], directory: Path) -> int:
    length = _first_integer(config, CONTEXT_LENGTH_KEYS)
    if length is None:
        raise ModelFilesError(f"config.json does not say the context length, in {directory}")
    return length


def _first_integer(config: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """The first of `keys` that a model's configuration has."""
    # Models that see keep their language part's configuration in a section of its own.
    for section in (config, config.get("text_config")):
        if isinstance(section, dict):
            for key in keys:
                if value := _integer(section, key):
                    return value
    return None


def _end_tokens(
    generation: Mapping[str, Any], template: ChatTemplate, tokenizer: Tokenizer
) -> tuple[int, ...]:
    """All tokens that end an answer: chat models end turns and texts with different ones."""
    value = generation.get("eos_token_id")
    listed = value if isinstance(value, list) else [value]
    tokens = {token for token in listed if isinstance(token, int)}
    if template.end_token is not None:
        token = tokenizer.token(template.end_token)
        if token is not None:
            tokens.add(token)
    return tuple(sorted(tokens))


def _digest(directory: Path) -> str:
    """A digest over all files, the same for every copy of them.

    Of large ones only both ends: reading gigabytes of weights would take longer than loading
    the model does.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        if path.suffix not in MODEL_FILE_SUFFIXES:
            continue
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(DIGEST_SPAN))
            file.seek(max(size - DIGEST_SPAN, 0))
            digest.update(file.read())
    return digest.hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFilesError(f"{path} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _number(fields: Mapping[str, Any], name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
