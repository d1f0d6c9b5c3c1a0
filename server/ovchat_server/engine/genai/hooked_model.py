"""A copy of a model's folder whose graph calls us with the logits.

genai loads models from folders only, and has no hook at the logits. So it gets another folder: the
graph with two more nodes, and links to all other files. The model's own folder is not changed, and
no weights are read or copied. Of vision models more is changed: see vision_folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.logits_hook import insert_logits_hook
from ovchat_server.engine.genai.model_graph import Graph
from ovchat_server.engine.genai.vision_folder import LANGUAGE_MODEL, VisionFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.engine.genai.embedding_rows import RowFormat

GRAPH = "openvino_model.xml"
# Of the change to graphs: folders that were kept by another version are not used.
VERSION = "3"


@dataclass(frozen=True, slots=True)
class HookedModel:
    """A folder to load instead of a model's own.

    Attributes:
        rows: The rows that it takes; None where it takes tokens.
    """

    path: str
    rows: RowFormat | None = None


@contextlib.contextmanager
def hooked_model(path: str, device: str, cache: str = "") -> Iterator[HookedModel | None]:
    """Yield a folder to load instead of `path`; None where the model cannot be hooked.

    Only the CPU plugin runs operations in Python, and genai recognizes only graphs that end in a
    product of matrices. The folder is deleted when the context is left, unless there is a cache.

    Args:
        path: The model's folder.
        device: OpenVINO's name of the device.
        cache: OpenVINO's CACHE_DIR, where it keeps compiled models by the names of their folders.
            The folder is kept there, too, or each start would add a compiled model. "": there is
            none.

    Raises:
        ModelLoadError: It is a vision model that cannot be served.
    """
    folder = Path(path).resolve()
    sees = (folder / LANGUAGE_MODEL).is_file()
    if device != "CPU":
        if sees:
            advice = f"set device to CPU, not {device!r}: vision models run on no other"
            raise ModelLoadError(advice)
        yield None
        return
    vision = VisionFolder(folder) if sees else None
    with contextlib.ExitStack() as stack:
        if cache:
            place = Path(cache).resolve() / f"ovchat-{_name(folder)}"
            there = place.is_dir() or _keep(place, folder, vision)
        else:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ovchat-")))
            there = _fill(place, folder, vision)
        if vision and not there:
            # genai would take none of the tokens that it gets instead.
            raise ModelLoadError("its language model does not end in a product of matrices")
        yield HookedModel(str(place), vision.rows if vision else None) if there else None


def _fill(place: Path, folder: Path, vision: VisionFolder | None) -> bool:
    """Fill an empty folder with what is to be loaded; return whether the model can be hooked."""
    try:
        written = vision.write(place) if vision else _write_hooked(place, folder)
    except (OSError, ET.ParseError, ValueError):
        # genai's own error says what is wrong with it.
        return False
    if written:
        for file in folder.iterdir():
            if not (place / file.name).exists():
                (place / file.name).symlink_to(file)
    return written


def _write_hooked(place: Path, folder: Path) -> bool:
    graph = Graph(folder / GRAPH)
    parameters = graph.parameters
    if not parameters.keys() >= {"input_ids", "position_ids"}:
        return False
    if not insert_logits_hook(graph, parameters["input_ids"], parameters["position_ids"]):
        return False
    graph.write(place / GRAPH)
    return True


def _keep(kept: Path, folder: Path, vision: VisionFolder | None) -> bool:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kept.name}-", dir=kept.parent) as place:
        if not _fill(Path(place), folder, vision):
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
