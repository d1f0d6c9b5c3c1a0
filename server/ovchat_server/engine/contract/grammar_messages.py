"""The frames between server and grammar process: one grammar at a time, one verdict for each."""

from __future__ import annotations

import msgspec


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

    @property
    def late(self) -> str:
        """Why the grammar cannot be served if it takes longer."""
        milliseconds = f"{1000 * self.mask_seconds:.3g}"
        return (
            f"it takes more than {milliseconds} ms a token to find out what it allows: "
            "make it less ambiguous"
        )


class Checked(msgspec.Struct, frozen=True):
    """The verdict on a grammar.

    Attributes:
        reason: Why it cannot be served; "" if it can.
        last: The process ends after this.
    """

    reason: str
    last: bool = False
