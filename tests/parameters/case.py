"""What a case of the table is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Fields = dict[str, Any]


def said(text: str, model: str = "demo", **fields: Any) -> Fields:
    """A chat of one message, always answered the same unless `fields` say otherwise."""
    messages = [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "temperature": 0, "max_tokens": 24, **fields}


def written(prompt: Any, model: str = "demo", **fields: Any) -> Fields:
    """A text completion, always answered the same unless `fields` say otherwise."""
    return {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": 24, **fields}


def turn(text: str) -> str:
    """The prompt that the demo model's template makes of a message."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Effect:
    """That a parameter changes the answer as documented.

    Attributes:
        name: The parameter.
        base: The request without it.
        given: What is added to the request, or put in the place of what it has.
        shows: Tells by the answers without and with it.
        why: Tells several cases of one parameter apart.
    """

    endpoint: str
    name: str
    base: Fields
    given: Fields
    shows: Callable[[Any, Any], bool]
    why: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.endpoint, self.name, self.why)))


@dataclass(frozen=True)
class Bound:
    """Values of a parameter at its bounds, and just outside; `base` has no other fault.

    Attributes:
        heavy: They are megabytes, or hundreds of answers.
    """

    endpoint: str
    name: str
    accepted: tuple[Any, ...]
    refused: tuple[Any, ...]
    base: Fields
    heavy: bool = False

    def __str__(self) -> str:
        return f"{self.endpoint} {self.name}"


def of_both(
    name: str,
    bases: tuple[Fields, Fields],
    given: Fields,
    shows: Callable[[Any, Any], bool],
    why: str = "",
) -> list[Effect]:
    """The same effect on chats and on text completions."""
    chat, text = bases
    return [
        Effect("chat", name, chat, given, shows, why),
        Effect("text", name, text, given, shows, why),
    ]
