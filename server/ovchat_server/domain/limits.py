"""The bounds on the size of a request, which an operator may change.

Bounds on grammars are not among them: they follow from what compiling one takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.json_value import JsonValue

# With deeper values, code that recurses may fail: chat templates, encoders.
DEEPEST = 256

ESCAPED = re.compile(r"\\.")
STRING = re.compile('"[^"]*"')
OTHERS = re.compile(r"[^\[\]]+")


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds, each at least 1; a request beyond one is refused, and the error names the field.

    docs/configuration.md has these descriptions.

    Attributes:
        max_messages: Messages of a conversation, as in OpenAI. Some chat templates go through all
            messages for each one (gemma, command-r), which takes 8 s for so many.
        max_parts: Content parts of a message, and of a prediction; also tool calls of a message.
        max_total_parts: Content parts and tool calls of all messages together. Reading so many
            takes 50 ms, in which the event loop serves nobody else.
        max_tools: Tools, or functions.
        max_documents: Documents, also of a request to `/rerank`, and texts of a side of `/score`.
        max_stop_strings: Stop strings, as in OVMS; OpenAI's bound is 4.
        max_stop_tokens: Stop tokens.
        max_logit_biases: Tokens in `logit_bias`.
        max_allowed_tokens: Tokens in `allowed_token_ids`, sent to the engine with each choice.
        max_bad_words: Texts in `bad_words`.
        max_choices: Choices for each prompt (`n`), as in OpenAI.
        max_prompts: Prompts of a text completion.
        max_prompt_logprobs: Log probabilities of prompt tokens in an answer, those of alternatives
            included.
        max_texts: Texts of a request to `/tokenize`, and inputs of one to `/embeddings`.
        max_tokenized_bytes: Bytes of all texts of a request to `/tokenize`, and of the text that
            `/detokenize` returns, as UTF-8: half a million tokens of English. Tokenizing so many
            may take two seconds, and for their duration 0.8 GB.
        max_json_depth: Nesting depth of objects and arrays in each parameter, and in the
            arguments of each tool call; at most 256. Leaves room for the deepest schema of a
            grammar.
    """

    max_messages: int = 2048
    max_parts: int = 1024
    max_total_parts: int = 16384
    max_tools: int = 1024
    max_documents: int = 1024
    max_stop_strings: int = 16
    max_stop_tokens: int = 1024
    max_logit_biases: int = 1024
    max_allowed_tokens: int = 4096
    max_bad_words: int = 128
    max_choices: int = 128
    max_prompts: int = 128
    max_prompt_logprobs: int = 100_000
    max_texts: int = 2048
    max_tokenized_bytes: int = 1 << 21
    max_json_depth: int = 128


DEFAULT_LIMITS = Limits()


def too_many_parts(total: int, limits: Limits) -> str | None:
    """Return what is wrong with a conversation of `total` parts and calls, if anything."""
    most = limits.max_total_parts
    if total <= most:
        return None
    return f"must contain at most {most} content parts and calls in all, got {total}"


def byte_size(texts: Iterable[str]) -> int:
    """Count the bytes of texts as UTF-8."""
    # An ASCII text has as many as characters: nothing is copied.
    return sum(
        len(text) if text.isascii() else len(text.encode(errors="surrogatepass")) for text in texts
    )


def text_deeper(text: str, depth: int) -> bool:
    """Return whether a JSON text is nested deeper than `depth` levels; undefined for other texts.

    Does not parse the text: this is the check that makes parsing it safe.
    """
    # Most have too few brackets: counting them takes no time.
    if text.count("{") + text.count("[") <= depth:
        return False
    outside = STRING.sub("", ESCAPED.sub("", text))
    brackets = OTHERS.sub("", outside.replace("{", "[").replace("}", "]")).encode()
    if brackets.count(b"[") != brackets.count(b"]"):
        return False
    # The backslash stands between the two: 1 for each that opens, -1 for each that closes.
    return max(accumulate(map(ord("\\").__sub__, brackets)), default=0) > depth


def deeper(value: JsonValue, depth: int) -> bool:
    """Return whether objects and arrays are nested deeper than `depth` levels.

    Does not recurse: this is the check that makes recursion safe.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True
