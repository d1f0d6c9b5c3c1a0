"""Reading the parameters that change logits: which tokens an answer may have, and how readily."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ovchat_server.domain.errors import shortened
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.domain.known_keys import ANY_KEYS
from ovchat_server.domain.reader import kind

if TYPE_CHECKING:
    from ovchat_server.domain.reader import Reader

MAX_TOKEN_ID = 2**32 - 1
MAX_PENALTY = 2
MAX_BIAS = 100
# What is longer is no word.
MAX_BAD_WORD_CHARACTERS = 256
# As JSON writes it, so that no token has two.
TOKEN_ID = re.compile("0|[1-9][0-9]*")


def read_penalty(reader: Reader, name: str) -> float:
    """Read one of OpenAI's penalties; as all here, note what is wrong in the reader."""
    return reader.number(name, -MAX_PENALTY, MAX_PENALTY) or 0.0


def read_logit_bias(reader: Reader) -> tuple[tuple[int, float], ...]:
    """Read tokens, and what is added to their logits."""
    entries = reader.object("logit_bias", ANY_KEYS)
    if entries is None:
        return ()
    if not reader.limit("logit_bias", entries.fields, reader.limits.max_logit_biases, "entries"):
        return ()
    biases: dict[int, float] = {}
    for key in entries.fields:
        if not TOKEN_ID.fullmatch(key) or len(key) > len(str(MAX_TOKEN_ID)):
            entries.refuse(shortened(key), "has an invalid key: it must be the id of a token")
        elif int(key) > MAX_TOKEN_ID:
            entries.refuse(key, f"has an invalid key: it must be at most {MAX_TOKEN_ID}")
        elif (bias := entries.number(key, -MAX_BIAS, MAX_BIAS)) is not None:
            biases[int(key)] = bias
    return tuple(biases.items())


def read_allowed_tokens(reader: Reader) -> tuple[int, ...]:
    """Read the only tokens to choose from; none: all."""
    return reader.integers(
        "allowed_token_ids", 0, MAX_TOKEN_ID, max_items=reader.limits.max_allowed_tokens
    )


def read_bad_words(reader: Reader) -> tuple[str, ...]:
    """Read texts that the answer must not hold."""
    values = reader.array("bad_words") or []
    if not reader.limit("bad_words", values, reader.limits.max_bad_words, "strings"):
        return ()
    words: list[str] = []
    for index, value in enumerate(values):
        field = FieldPath.of("bad_words", index)
        if not isinstance(value, str):
            reader.refuse(field, f"must be a string, not {kind(value)}", "invalid_type")
        elif not value.strip():
            # White space in front is cut off (vLLM), and nothing would be left.
            reader.refuse(field, "must contain more than white space")
        elif len(value) > MAX_BAD_WORD_CHARACTERS:
            complaint = f"must have at most {MAX_BAD_WORD_CHARACTERS} characters, got {len(value)}"
            reader.refuse(field, complaint)
        else:
            words.append(value)
    return tuple(words)
