"""What a tokenizer is configured with, for clients that tokenize by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonObject, JsonValue

# They name files of the machine that the model was made on.
FILES = ("vocab_file", "merges_file", "name_or_path")
# The class that transformers takes where a folder names none.
DEFAULT_CLASS = "PreTrainedTokenizerFast"


def describe_tokenizer(
    config: Mapping[str, JsonValue], special_tokens: Mapping[str, str], chat_template: str
) -> JsonObject:
    """Return what vLLM's `/tokenizer_info` answers: `tokenizer_config.json` with texts for tokens.

    Args:
        config: That file; empty where there is none.
        special_tokens: `bos_token`, `eos_token` and the like, which may be from other files.
        chat_template: The default one.
    """
    described = {name: _plain(value) for name, value in config.items() if name not in FILES}
    described |= special_tokens
    described.setdefault("tokenizer_class", DEFAULT_CLASS)
    described["chat_template"] = chat_template
    return described


def _plain(value: JsonValue) -> JsonValue:
    """Replace tokens that are given with their properties by their texts."""
    match value:
        case {"content": str(text), **properties} if properties.keys() & {"special", "__type"}:
            return text
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
    return value
