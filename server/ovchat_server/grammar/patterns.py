"""Texts inside the compiler's regular expressions (xgrammar 0.1.31)."""

from __future__ import annotations

import re

SPECIAL = re.compile(r"[\\.^$*+?()\[\]{}|/]")


def literal(text: str) -> str:
    """Return the pattern of one text."""
    return SPECIAL.sub(r"\\\g<0>", text)
