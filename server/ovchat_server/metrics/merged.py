"""The metrics of several servers as those of one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# As prometheus-client writes a family: HELP, TYPE and the samples.
_FAMILY = re.compile(rb"(# HELP .*\n)(# TYPE .*\n)((?:[^#].*\n)*)")
_UP = b"# HELP ovchat_up 1 if the server answered this scrape.\n# TYPE ovchat_up gauge\n"


def merged(expositions: Iterable[bytes]) -> bytes:
    """Return the text in which each family of several texts occurs once, with all samples."""
    families: dict[bytes, list[bytes]] = {}
    for exposition in expositions:
        for text, kind, samples in _FAMILY.findall(exposition):
            # Only the first text counts: servers may have been started from different versions.
            families.setdefault(kind, [text, kind]).append(samples)
    return b"".join(part for parts in families.values() for part in parts)


def answered(servers: Sequence[bool]) -> bytes:
    """Return the gauge that says of each server, by its number, whether it answered."""
    samples = (f'ovchat_up{{server="{n}"}} {up:d}.0\n' for n, up in enumerate(servers, start=1))
    return _UP + "".join(samples).encode()
