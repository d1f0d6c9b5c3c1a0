"""Texts inside the compiler's regular expressions, and what it misreads (xgrammar 0.1.31)."""

from __future__ import annotations

import re

# It reads such a letter and what follows as one hexadecimal number.
MISREAD = re.compile("[\x80-\xff][0-9A-Fa-f]")
MISREAD_LETTER = re.compile("[\x80-\xff](?=[0-9A-Fa-f])")
SPECIAL = re.compile(r"[\\.^$*+?()\[\]{}|/]")


def literal(text: str) -> str:
    """A pattern of one text."""
    return SPECIAL.sub(r"\\\g<0>", text)
