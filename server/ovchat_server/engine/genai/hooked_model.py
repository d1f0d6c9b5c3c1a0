"""A copy of a model's folder whose graph calls us with the logits.

genai loads models from folders only, and has no hook at the logits. So it gets another folder: the
graph with two more nodes, and links to all other files. The model's own folder is not changed, and
no weights are read or copied.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

from ovchat_server.engine.genai.model_graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPH = "openvino_model.xml"
# Of the change to graphs: folders that were kept by another version are not used.
VERSION = "2"


@contextlib.contextmanager
def hooked_model(path: str, device: str, cache: str = "") -> Iterator[str | None]:
    """Yield a folder to load instead of `path`; None where the model cannot be hooked.

    Only the CPU plugin runs operations in Python, and genai recognizes only graphs that end in a
    product of matrices. The folder is deleted when the context is left, unless there is a cache.

    Args:
        path: The model's folder.
        device: OpenVINO's name of the device.
        cache: OpenVINO's CACHE_DIR, where it keeps compiled models by the names of their folders.
            The folder is kept there, too, or each start would add a compiled model. "": there is
            none.
    """
    folder = Path(path).resolve()
    if device != "CPU":
        yield None
    elif cache:
        kept = Path(cache).resolve() / f"ovchat-{_name(folder)}"
        yield str(kept) if kept.is_dir() or _keep(kept, folder) else None
    else:
        with tempfile.TemporaryDirectory(prefix="ovchat-") as place:
            yield place if _fill(Path(place), folder) else None


def _fill(place: Path, folder: Path) -> bool:
    """Fill an empty folder with what is to be loaded; return whether the model can be hooked."""
    try:
        graph = Graph(folder / GRAPH)
    except (OSError, ET.ParseError, ValueError):
        # genai's own error says what is wrong with it.
        return False
    if not graph.can_be_hooked:
        return False
    for file in folder.iterdir():
        if file.name != GRAPH:
            (place / file.name).symlink_to(file)
    graph.insert_hook()
    graph.write(place / GRAPH)
    return True


def _keep(kept: Path, folder: Path) -> bool:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kept.name}-", dir=kept.parent) as place:
        if not _fill(Path(place), folder):
            return False
        # Another engine may be doing the same, and what it keeps is as good.
        with contextlib.suppress(OSError):
            Path(place).rename(kept)
    return kept.is_dir()


def _name(folder: Path) -> str:
    """Return a name that changes with anything in the folder, and with VERSION."""
    files = sorted(file for file in folder.iterdir() if file.exists())
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((VERSION, str(folder), facts)).encode()).hexdigest()[:16]
