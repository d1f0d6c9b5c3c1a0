"""The cases of chats as cases of the Responses API, where it can say them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat_server.domain.responses.body import LOGPROBS
from ovchat_server.domain.responses.parameters import RESPONSES
from tests.parameters.case import Bound, Effect, Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NAMES = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning",
    "logprobs": "include",
}
# Those that have cases of their own here: they mean something else, or are seen by something else.
OWN = ("messages", "stream", "stream_options", "top_logprobs")
# What tells of the stop, which no response names.
UNTOLD = (
    "chat stop a string",
    "chat stop an array",
    "chat stop_token_ids",
    "chat ignore_eos stop tokens still end the answer",
)


def of_chat(fields: Fields) -> Fields:
    """The same request, or part of one, as the Responses API has it."""
    return {NAMES.get(name, name): _value(name, value) for name, value in fields.items()}


def flat(tool: Any) -> Any:
    """A tool, or the choice of one."""
    return {"type": "function", **tool["function"]} if isinstance(tool, dict) else tool


VALUES: dict[str, Callable[[Any], Any]] = {
    "tools": lambda tools: [flat(tool) for tool in tools],
    "tool_choice": flat,
    "reasoning_effort": lambda effort: {"effort": effort},
    "logprobs": lambda asked: [LOGPROBS] if asked else [],
}


def _value(name: str, value: Any) -> Any:
    return VALUES[name](value) if name in VALUES and value is not None else value


def _sayable(*names: str) -> bool:
    return {NAMES.get(name, name) for name in names} <= RESPONSES.served


def effects(of_all: Iterable[Effect]) -> list[Effect]:
    """The effects of chats that are the same here."""
    return [
        Effect(
            "responses",
            NAMES.get(effect.name, effect.name),
            of_chat(effect.base),
            of_chat(effect.given),
            effect.shows,
            effect.why,
        )
        for effect in of_all
        if effect.endpoint == "chat"
        and effect.name not in OWN
        and str(effect) not in UNTOLD
        and _sayable(*effect.base, *effect.given)
    ]


def bounds(of_all: Iterable[Bound]) -> list[Bound]:
    """The bounds of chats that are the same here."""
    return [
        Bound(
            "responses",
            NAMES.get(bound.name, bound.name),
            tuple(_value(bound.name, value) for value in bound.accepted),
            tuple(_value(bound.name, value) for value in bound.refused),
            of_chat(bound.base),
            bound.heavy,
        )
        for bound in of_all
        if bound.endpoint == "chat"
        and bound.name not in {"logprobs", "top_logprobs"}
        and _sayable(bound.name, *bound.base)
    ]
