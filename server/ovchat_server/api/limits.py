"""How much of what a request may hold: bounds that an operator may move.

Those of grammars are not among them: what compiling takes is the compiler's nature.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ovchat_server.api.json_value import JsonValue

# Deeper, and what goes through values recursively may fail: templates, encoders.
DEEPEST = 256

ESCAPED = re.compile(r"\\.")
STRING = re.compile('"[^"]*"')
OTHERS = re.compile(r"[^\[\]]+")


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds; what is beyond is refused, and the error names the field.

    Attributes:
        max_messages: Of a conversation. OpenAI's; some models' templates go through all
            messages for each (gemma, command-r), which takes them 8 s.
        max_parts: Parts of the content of a message, and calls in one, each.
        max_total_parts: Parts and calls of all messages together: reading so many takes 50 ms, in
            which nobody else is served.
        max_tools: Tools, or functions.
        max_documents: Documents.
        max_stop_strings: OVMS's; OpenAI's is 4.
        max_stop_tokens: Stop tokens.
        max_logit_biases: Tokens with a bias.
        max_allowed_tokens: Tokens to choose from. They are told to the engine with every choice.
        max_bad_words: Texts that an answer must not hold.
        max_choices: Choices of each prompt. OpenAI's.
        max_prompts: Prompts of a text completion.
        max_prompt_logprobs: Log probabilities of prompts that an answer tells: as many of each
            token as there are alternatives, and its own.
        max_texts: Texts to tokenise.
        max_json_depth: Objects and arrays inside each other, in each parameter, and in the
            arguments of each call; up to 256. A schema as deep as a grammar may be fits in.
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
    max_json_depth: int = 128

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: A bound lets nothing pass, or too much.
        """
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1")
        if self.max_json_depth > DEEPEST:
            raise ValueError(f"max_json_depth must be at most {DEEPEST}")


DEFAULT_LIMITS = Limits()


def too_many_parts(total: int, limits: Limits) -> str | None:
    """What is wrong with a conversation of `total` parts and calls, if anything is."""
    most = limits.max_total_parts
    if total <= most:
        return None
    return f"must hold at most {most} content parts and calls in all, got {total}"


def text_deeper(text: str, depth: int) -> bool:
    """Whether a text that is JSON is nested deeper than `depth` levels; one that is none may be.

    Parses nothing: it is what says whether parsing is safe.
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
    """Whether objects and arrays are nested deeper than `depth` levels.

    Not recursive: it is what says whether recursion is safe.
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
