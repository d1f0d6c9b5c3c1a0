"""The frames between server and grammar process: one grammar at a time, one verdict for each."""

from __future__ import annotations

import msgspec


class SandboxSpec(msgspec.Struct, frozen=True):
    """A model, and the path of its folder."""

    name: str
    path: str


class SandboxReady(msgspec.Struct, frozen=True):
    """The process takes grammars."""


class Compile(msgspec.Struct, frozen=True):
    """Compile a grammar; see grammar.formats."""

    grammar: str


class Checked(msgspec.Struct, frozen=True):
    """Why the grammar does not compile; "" where it does. `last`: the process ends now."""

    reason: str
    last: bool = False
