"""The cases of chats as cases of other APIs whose requests are chats, where those can say them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.parameters.case import Bound, Effect, Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ovchat_server.domain.parameters import Parameters


@dataclass(frozen=True)
class Api:
    """An API whose requests are chats in other words.

    Attributes:
        endpoint: What it is called in the table.
        known: Its parameters.
        names: What it calls those of chats that have another name there.
        values: Their values there, by their names in chats.
        own: Those that have cases of their own: they mean something else, or are seen by
            something else.
        own_bounds: Those that have bounds of their own.
        untold: Effects that no answer there tells of.
        always: What a request has besides, to have the same effect.
    """

    endpoint: str
    known: Parameters
    names: Mapping[str, str]
    values: Mapping[str, Callable[[Any], Any]]
    own: tuple[str, ...]
    own_bounds: tuple[str, ...]
    untold: tuple[str, ...]
    always: Fields = field(default_factory=dict)

    def of_chat(self, fields: Fields) -> Fields:
        """The same request, or part of one."""
        return {self._name(name): self._value(name, value) for name, value in fields.items()}

    def effects(self, of_all: Iterable[Effect]) -> list[Effect]:
        """The effects of chats that are the same here."""
        return [
            Effect(
                self.endpoint,
                self._name(effect.name),
                {**self.always, **self.of_chat(effect.base)},
                self.of_chat(effect.given),
                effect.shows,
                effect.why,
            )
            for effect in of_all
            if effect.endpoint == "chat"
            and effect.name not in self.own
            and str(effect) not in self.untold
            and self._sayable(*effect.base, *effect.given)
        ]

    def bounds(self, of_all: Iterable[Bound]) -> list[Bound]:
        """The bounds of chats that are the same here."""
        return [
            Bound(
                self.endpoint,
                self._name(bound.name),
                tuple(self._value(bound.name, value) for value in bound.accepted),
                tuple(self._value(bound.name, value) for value in bound.refused),
                self.of_chat(bound.base),
                bound.heavy,
            )
            for bound in of_all
            if bound.endpoint == "chat"
            and bound.name not in self.own_bounds
            and self._sayable(bound.name, *bound.base)
        ]

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _value(self, name: str, value: Any) -> Any:
        return self.values[name](value) if name in self.values and value is not None else value

    def _sayable(self, *names: str) -> bool:
        return {*map(self._name, names)} <= self.known.served
