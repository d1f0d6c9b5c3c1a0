"""A model's folder with an operation of ours before the model's result.

genai loads models from folders only, and has no hook at the logits. So it gets another folder: the
graph with two nodes more, and links to all other files. Nothing of the model's own folder is
changed, and no weights are read or copied.
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
# Of what is done to graphs: what was kept of another one is of no use.
VERSION = "1"


@contextlib.contextmanager
def tapped_model(path: str, device: str, cache: str = "") -> Iterator[str | None]:
    """A folder to load instead of `path`, until the context is left; None: there can be none.

    Only the CPU plugin runs operations in Python, and only graphs that end in a product of
    matrices keep their form.

    Args:
        path: The model's folder.
        device: OpenVINO's name of it.
        cache: Where OpenVINO keeps compiled models, by the names of their folders. So ours is
            kept there, too, or there would be another compiled model after each start. "": it keeps
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
    """Make an empty folder what is to be loaded, where there can be such a thing."""
    try:
        graph = Graph(folder / GRAPH)
    except (OSError, ET.ParseError, ValueError):
        # genai tells better what is wrong with it.
        return False
    if not graph.tappable:
        return False
    for file in folder.iterdir():
        if file.name != GRAPH:
            (place / file.name).symlink_to(file)
    graph.tap()
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
    """Of all that what is kept depends on."""
    files = sorted(file for file in folder.iterdir() if file.exists())
    facts = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((VERSION, str(folder), facts)).encode()).hexdigest()[:16]
