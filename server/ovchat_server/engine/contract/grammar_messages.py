"""The frames between server and grammar process: one grammar at a time, one verdict for each."""

from __future__ import annotations

from typing import Final

import msgspec

# Why a grammar cannot be served that is followed, and takes longer than it may.
SLOW_TO_FOLLOW: Final = (
    "it takes too long to find out which tokens it allows, and others wait: make it less ambiguous"
)


class GrammarProcessSpec(msgspec.Struct, frozen=True):
    """What a grammar process is for.

    Attributes:
        name: That of the model.
        path: Its folder.
        followed_tokens: The most tokens of an answer that is followed; 0: none is.
    """

    name: str
    path: str
    followed_tokens: int = 0


class GrammarProcessReady(msgspec.Struct, frozen=True):
    """The process is ready to compile grammars."""


class Compile(msgspec.Struct, frozen=True, tag="compile"):
    """Compile a grammar; see grammar.formats."""

    grammar: str


class Follow(msgspec.Struct, frozen=True, tag="follow"):
    """Find out which tokens a grammar allows, after each token of an answer.

    Attributes:
        grammar: Which compiles.
        tokens: Those of the answer so far.
        mask_seconds: Processor time that this may take for each of them.
    """

    grammar: str
    tokens: tuple[int, ...]
    mask_seconds: float


class Checked(msgspec.Struct, frozen=True):
    """The verdict on a grammar.

    Attributes:
        reason: Why it cannot be served; "" if it can.
        last: The process ends after this.
    """

    reason: str
    last: bool = False
