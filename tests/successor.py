"""What the successor model says."""

from __future__ import annotations

FIRST, LAST = ord(" "), ord("~")


def successor_text(after: str, length: int) -> str:
    """The `length` characters that follow `after`."""
    code = ord(after[-1])
    answer = []
    for _ in range(length):
        printable = FIRST <= code <= LAST
        code = FIRST + (code + 1 - FIRST) % (LAST + 1 - FIRST) if printable else ord("a")
        answer.append(chr(code))
    return "".join(answer)
