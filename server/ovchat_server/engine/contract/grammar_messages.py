"""The frames between server and grammar process: one grammar at a time, one verdict for each."""

from __future__ import annotations

import msgspec


class GrammarProcessSpec(msgspec.Struct, frozen=True):
    """The name of a model, and the path of its folder."""

    name: str
    path: str


class GrammarProcessReady(msgspec.Struct, frozen=True):
    """The process is ready to compile grammars."""


class Compile(msgspec.Struct, frozen=True):
    """Compile a grammar; see grammar.formats."""

    grammar: str


class Checked(msgspec.Struct, frozen=True):
    """The verdict on a grammar.

    Attributes:
        reason: Why it does not compile; "" if it does.
        last: The process ends after this.
    """

    reason: str
    last: bool = False
