"""Gives memory back to the system that was freed by native code."""

from __future__ import annotations

import ctypes


def return_freed_memory() -> None:
    """Have the C library return what it keeps for later, if it can.

    After megabytes of text, which are tokenized in millions of small pieces, glibc keeps all of
    their memory in each thread's arena: 230 bytes for each character, for good.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
