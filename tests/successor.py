"""What the successor model says."""

from __future__ import annotations

import secrets

FIRST, LAST = ord(" "), ord("~")


def new_prompt(length: int) -> str:
    """Text of which the prefix cache has nothing: others ask with a single letter, which it has."""
    return "#" + secrets.token_hex(length)[1:length]


def successor_text(after: str, length: int) -> str:
    """The `length` characters that follow `after`."""
    code = ord(after[-1])
    answer = []
    for _ in range(length):
        printable = FIRST <= code <= LAST
        code = FIRST + (code + 1 - FIRST) % (LAST + 1 - FIRST) if printable else ord("a")
        answer.append(chr(code))
    return "".join(answer)
