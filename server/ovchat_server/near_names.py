"""Names that may be meant where another was given."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


def did_you_mean(
    name: str, known: Iterable[str], write: Callable[[str], str] = str, *, cutoff: float = 0.6
) -> str:
    """Return "; did you mean ...?" where one of the known names is close, as `write` writes it."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {write(close[0])}?" if close else ""


def did_you_mean_path(path: Path) -> str:
    """Return "; did you mean ...?" where something beside a path has a name that is close."""
    try:
        beside = [item.name for item in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, beside, lambda name: str(path.with_name(name)))
