"""The files of a model's folder with its chat template and the special tokens templates use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# A processor's own files, which win over those of the tokenizer it contains.
PROCESSOR_FILES = ("processor_config.json", "chat_template.json")
STANDARD_TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


class ChatTemplateError(Exception):
    """A model's folder has no chat template, or one that does not compile."""


@dataclass(frozen=True, slots=True)
class TemplateFiles:
    """What a model's folder says about rendering conversations.

    Attributes:
        source: The template, as Jinja2.
        tool_source: The template for conversations with tools, if there is one.
        special_tokens: `bos_token`, `eos_token` and the like: text by name.
        file: The name of the file that the template is in.
        tool_file: The same of the template for conversations with tools.
    """

    source: str
    tool_source: str | None
    special_tokens: Mapping[str, str]
    file: str
    tool_file: str | None


def read_template_files(directory: Path) -> TemplateFiles:
    """Find the templates and special tokens of a model, as Hugging Face's transformers does.

    Raises:
        ChatTemplateError: There is no template, or a file cannot be read.
    """
    config = _read_json(directory / "tokenizer_config.json")
    sources = _sources(directory, config)
    if not sources:
        raise ChatTemplateError("there is no chat template (chat_template.jinja)")
    if "default" not in sources:
        names = ", ".join(sorted(sources))
        raise ChatTemplateError(f"there is no default chat template, only {names}")
    tokens = _special_tokens(directory, config)
    file, source = sources["default"]
    tool_file, tool_source = sources.get("tool_use", (None, None))
    return TemplateFiles(source, tool_source, tokens, file, tool_file)


def _sources(directory: Path, config: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the templates by name, each with the name of its file before it."""
    for file in PROCESSOR_FILES:
        if sources := _named(_read_json(directory / file).get("chat_template")):
            return {name: (file, source) for name, source in sources.items()}
    files = {path.stem: path for path in directory.glob("additional_chat_templates/*.jinja")}
    single = directory / "chat_template.jinja"
    if single.is_file():
        files.setdefault("default", single)
    # Templates in files replace all of the configuration's, also those of other names.
    if files:
        return {name: (path.name, _read_text(path)) for name, path in files.items()}
    sources = _named(config.get("chat_template"))
    return {name: ("tokenizer_config.json", source) for name, source in sources.items()}


def _named(value: object) -> dict[str, str]:
    """Return the templates of a configuration: one text, or several with names."""
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, list):
        items = [item for item in value if isinstance(item, dict)]
        value = {item.get("name"): item.get("template") for item in items}
    if not isinstance(value, dict):
        return {}
    return {str(name): source for name, source in value.items() if isinstance(source, str)}


def _special_tokens(directory: Path, config: Mapping[str, Any]) -> dict[str, str]:
    # Folders written since transformers 4.34 repeat in this file what the configuration says.
    legacy = "added_tokens_decoder" not in config
    mapped = _read_json(directory / "special_tokens_map.json") if legacy else {}
    values = {name: value for name, value in mapped.items() if name.endswith("_token")}
    values |= {
        name: value
        for name, value in config.items()
        if name.endswith("_token") and not (name in STANDARD_TOKENS and name in mapped)
    }
    for name in ("model_specific_special_tokens", "extra_special_tokens"):
        extra = config.get(name)
        if isinstance(extra, dict):
            values |= extra
    tokens = {name: _content(value) for name, value in values.items()}
    return {name: token for name, token in tokens.items() if token is not None}


def _content(token: object) -> str | None:
    """Return the text of a token, which is given alone or with its properties."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise ChatTemplateError(f"{path.name} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ChatTemplateError(f"{path.name} is not UTF-8") from error
    except OSError as error:
        raise ChatTemplateError(f"{path.name} cannot be read: {error.strerror}") from error
