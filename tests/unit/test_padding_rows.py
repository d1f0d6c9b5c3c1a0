"""Graphs in which padding cannot be left out are not changed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.genai.hooked_model import GRAPH, hooked_model
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = ROOT / "models/successor"


def written(folder: Path, *, leaves_out_padding: bool) -> bytes:
    """The graph to load instead of a folder's."""
    with hooked_model(str(folder), "CPU", leaves_out_padding=leaves_out_padding) as hooked:
        assert hooked is not None
        return (Path(hooked.path) / GRAPH).read_bytes()


def other_attention(root: ET.Element) -> None:
    [layer] = [item for item in root.iter("layer") if item.get("type", "").startswith("Scaled")]
    layer.set("type", "MultiHeadAttention")


def keys_in_another_order(root: ET.Element) -> None:
    """They are appended along another axis."""
    caches = [item for item in root.iter("layer") if item.get("name", "").endswith("cat/Concat")]
    for data in [data for item in caches for data in item.iter("data")]:
        data.set("axis", "1")


def keys_computed_in_another_way(root: ET.Element) -> None:
    for layer in root.iter("layer"):
        if layer.get("type") == "Broadcast":
            layer.set("type", "Multiply")


def another_memory(root: ET.Element) -> None:
    layers = root.find("layers")
    assert layers is not None
    ET.SubElement(layers, "layer", id="100000", name="another", type="ReadValue", version="opset6")


def another_input(root: ET.Element) -> None:
    [layer] = [item for item in root.iter("layer") if item.get("name") == "beam_idx"]
    layer.set("name", "token_type_ids")


def learned_positions(root: ET.Element) -> None:
    [positions] = [item for item in root.iter("layer") if item.get("name") == "position_ids"]
    [edge] = [item for item in root.iter("edge") if item.get("from-layer") == positions.get("id")]
    [reader] = [item for item in root.iter("layer") if item.get("id") == edge.get("to-layer")]
    reader.set("type", "Add")


EDITS = [
    other_attention,
    keys_in_another_order,
    keys_computed_in_another_way,
    another_memory,
    another_input,
    learned_positions,
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_graph_of_another_form_is_hooked_as_it_is(
    tmp_path: Path, edit: Callable[[ET.Element], None]
) -> None:
    tree = ET.parse(MODEL / GRAPH)
    edit(tree.getroot())
    tree.write(tmp_path / GRAPH)

    left_out, hooked = (written(tmp_path, leaves_out_padding=leaves) for leaves in (True, False))
    assert left_out == hooked


def test_a_graph_is_changed_without_its_weights(tmp_path: Path) -> None:
    tree = ET.parse(MODEL / GRAPH)
    tree.write(tmp_path / GRAPH)
    left_out, hooked = (written(tmp_path, leaves_out_padding=leaves) for leaves in (True, False))
    assert left_out != hooked
    # No weights are there that could be read.
    assert [item.name for item in tmp_path.iterdir()] == [GRAPH]
