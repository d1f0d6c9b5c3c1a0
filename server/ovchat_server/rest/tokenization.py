"""Tokenize and detokenize answers, in OVMS's and vLLM's JSON at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonObject, JsonValue
    from ovchat_server.domain.tokenization import Tokenized


def tokenized(result: Tokenized) -> JsonObject:
    """Return the object of vLLM, in which several texts have an array each, as with OVMS.

    A single text has its tokens flat, also where it came in an array, as with OVMS.
    """
    tokens: list[JsonValue] = [list(sequence.tokens) for sequence in result.sequences]
    strings: list[JsonValue] = [
        None if sequence.strings is None else list(sequence.strings)
        for sequence in result.sequences
    ]
    single = len(tokens) == 1
    return {
        "count": result.count,
        "max_model_len": result.context_length,
        "tokens": tokens[0] if single else tokens,
        "token_strs": strings[0] if single or strings[0] is None else strings,
    }


def detokenized(text: str) -> JsonObject:
    """Return vLLM's object with the text of tokens."""
    return {"prompt": text}
