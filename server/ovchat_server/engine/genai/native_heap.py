"""The memory that native code allocates, without Python's own objects and files in memory."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h, in its order.
COUNTERS = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)
# mallinfo counts in 32 bits; mallinfo2, which has 64, needs glibc 2.33.
WRAP = 1 << 32


class _MallocInfo(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint) for name in COUNTERS)


class NativeHeap:
    """Measures how the C heap of this process grows."""

    def __init__(self) -> None:
        """Measure from now on."""
        # Holding the GIL: genai's step does, too, so what a step allocates is not counted.
        self._libc = ctypes.PyDLL(None)
        self._libc.mallinfo.restype = _MallocInfo
        self._start = self._used()

    @property
    def growth(self) -> int:
        """Bytes that are in use beyond those of the start; less than 2 GiB either way."""
        return (self._used() - self._start + WRAP // 2) % WRAP - WRAP // 2

    def trim(self) -> None:
        """Return free memory to the system, and measure from now on."""
        self._libc.malloc_trim(0)
        self._start = self._used()

    def _used(self) -> int:
        info = self._libc.mallinfo()
        return int(info.uordblks) + int(info.hblkhd)
