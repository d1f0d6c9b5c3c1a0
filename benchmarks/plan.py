"""What a workload asks, and what came of it: the same for every contender."""

from __future__ import annotations

from typing import Any

import msgspec


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    Attributes:
        label: What it is in its workload, such as "warm"; figures are kept apart by it.
        messages: Role and text of each.
        image: The file of an image behind the text of the first of them.
        tokens: The same as the server tokenises it, for the bare loop.
        max_tokens: Most tokens of each answer; all of them where it is `whole`.
        choices: How many answers; more than one are sampled.
        top_logprobs: Likeliest tokens that are told with each; the bare loop tells none.
        schema: JSON Schema that the answer follows.
        tools: Functions in OpenAI's form.
        may_end: Whether the model may end the answer.
    """

    label: str = ""
    messages: tuple[tuple[str, str], ...]
    image: bytes = b""
    tokens: tuple[int, ...] = ()
    max_tokens: int
    choices: int = 1
    top_logprobs: int = 0
    schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    may_end: bool = False

    @property
    def whole(self) -> bool:
        """Whether each answer is to have all its tokens: neither a schema nor the model ends it."""
        return self.schema is None and not self.may_end


class Lane(msgspec.Struct, frozen=True):
    """Requests that follow each other, as of one caller; the first after `delay` seconds."""

    asks: tuple[Ask, ...]
    delay: float = 0.0


class Plan(msgspec.Struct, frozen=True):
    """Phases that follow each other, each of lanes side by side."""

    phases: tuple[tuple[Lane, ...], ...]


class Trace(msgspec.Struct, kw_only=True):
    """How a request went; times in seconds of one clock.

    Attributes:
        label: The request's.
        start: When it was sent.
        end: When its last byte came.
        arrivals: Of each choice, when something of it came that can be seen.
        prompt_tokens: As the server counts them.
        completion_tokens: Of all choices together.
    """

    label: str
    start: float
    end: float
    arrivals: dict[int, list[float]]
    prompt_tokens: int
    completion_tokens: int
