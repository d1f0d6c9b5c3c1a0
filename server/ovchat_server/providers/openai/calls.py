"""Reading the calls of one choice."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeVar

from ovchat_server.domain.completion import ToolCallDelta
from ovchat_server.providers.kind import BadAnswerError
from ovchat_server.providers.openai import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

NOTHING = wire.Function()


class CallReader:
    """Tells new calls from what is new of earlier ones, whatever servers say of either.

    By OpenAI's API each delta has the call's index, and the first one its id and name. Some
    servers repeat id and name, some have no index or always the same, some have no id.
    """

    def __init__(self, *, single: bool) -> None:
        """Read no call yet; `single`: only the first is wanted."""
        self._single = single
        # Of the calls, in their order, as the server has them.
        self._ids: list[str | None] = []
        self._indices: list[float | None] = []
        self._names: list[str] = []

    @property
    def called(self) -> bool:
        """Whether there was a call."""
        return bool(self._ids)

    def read(self, calls: Sequence[wire.ToolCall]) -> tuple[ToolCallDelta, ...]:
        """Return what is new of calls.

        Raises:
            BadAnswerError: A call has no name.
        """
        deltas = [self._delta(call) for call in calls]
        return tuple(delta for delta in deltas if not (self._single and delta.index))

    def _delta(self, call: wire.ToolCall) -> ToolCallDelta:
        function = call.function or NOTHING
        known = self._known(call, function)
        if known is not None and function.name in (None, "", self._names[known]):
            return ToolCallDelta(known, arguments=function.arguments or "")
        if not function.name:
            raise BadAnswerError("a call has no name")
        # As our own models' calls have them.
        own = f"call_{uuid.uuid4().hex[:24]}"
        identifier = own if call.id in (None, "", *self._ids) else call.id
        self._ids.append(call.id)
        self._indices.append(call.index)
        self._names.append(function.name)
        return ToolCallDelta(
            len(self._ids) - 1, identifier, function.name, function.arguments or ""
        )

    def _known(self, call: wire.ToolCall, function: wire.Function) -> int | None:
        """Return which call it goes on with; None for a new one."""
        if call.index is not None and call.index not in self._indices:
            return None
        if call.id and call.id in self._ids:
            return _last(self._ids, call.id)
        if function.name and (call.id or call.index is None):
            return None
        if call.index is not None:
            return _last(self._indices, call.index)
        return len(self._ids) - 1 if self._ids else None


def _last(values: list[T], value: T) -> int:
    return len(values) - 1 - values[::-1].index(value)
