"""Inserts the operation that sees the logits into a model's graph (OpenVINO IR, XML).

    Result <- MatMul    becomes
    Result <- Add(MatMul, LogitsHook(MatMul, input_ids, position_ids))

genai still recognizes this end of a graph, and computes logits only for tokens after which the next
one is chosen (openvino.genai, utils.cpp, find_llm_matmul).
"""

from __future__ import annotations

# The model's files are the operator's own, as its code would be.
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HOOK = "LogitsHook"
# What the operation gets besides the logits: the tokens that the step reads, and their positions.
INPUTS = ("input_ids", "position_ids")
# One number where nothing is added, else as many as there are logits.
ANY_SHAPE = ["-1", "-1", "-1"]


class Graph:
    """A model's graph."""

    def __init__(self, path: Path) -> None:
        """Read the graph in a file.

        Raises:
            OSError: The file cannot be read.
            ParseError: The file is not XML.
            ValueError: The XML is not a graph.
        """
        self._tree = ET.parse(path)  # noqa: S314  see above
        root = self._tree.getroot()
        self._layers = _child(root, "layers")
        self._edges = _child(root, "edges")
        self._results = [layer for layer in self._layers if layer.get("type") == "Result"]
        self._parameters = {
            layer.get("name"): layer for layer in self._layers if layer.get("type") == "Parameter"
        }

    @property
    def can_be_hooked(self) -> bool:
        """Whether it ends in a product of matrices, and has the inputs of an LLM."""
        if len(self._results) != 1 or not self._parameters.keys() >= {*INPUTS}:
            return False
        return self._logits()[0].get("type") == "MatMul"

    def insert_hook(self) -> None:
        """Insert the operation before the result."""
        product, edge = self._logits()
        logits = _port(_child(product, "output"))
        parameters = [self._parameters[name] for name in INPUTS]
        sources = [(product, logits)] + [
            (parameter, _port(_child(parameter, "output"))) for parameter in parameters
        ]
        hook = self._insert(HOOK, "extension", [port for _, port in sources])
        added = _output(hook, len(sources), logits.get("precision"), ANY_SHAPE)
        total = self._insert("Add", "opset1", [logits, added])
        result = _output(total, 2, logits.get("precision"), _shape(logits))
        # genai finds the logits by the name of this output.
        result.set("names", logits.attrib.pop("names", "logits"))
        for number, (layer, port) in enumerate(sources):
            self._connect(layer, port, hook, number)
        self._connect(product, logits, total, 0)
        self._connect(hook, added, total, 1)
        edge.set("from-layer", total.attrib["id"])
        edge.set("from-port", result.attrib["id"])

    def write(self, path: Path) -> None:
        """Write it to a file."""
        self._tree.write(path)

    def _logits(self) -> tuple[ET.Element, ET.Element]:
        """Return the layer that computes the logits, and its edge to the result."""
        [result] = self._results
        [edge] = [edge for edge in self._edges if edge.get("to-layer") == result.get("id")]
        [layer] = [layer for layer in self._layers if layer.get("id") == edge.get("from-layer")]
        return layer, edge

    def _insert(self, kind: str, version: str, inputs: list[ET.Element]) -> ET.Element:
        """Insert a layer before the result, with inputs like these ports."""
        identifier = 1 + max(int(layer.attrib["id"]) for layer in self._layers)
        layer = ET.Element(
            "layer", id=str(identifier), name=f"ovchat/{kind}", type=kind, version=version
        )
        if kind == "Add":
            ET.SubElement(layer, "data", auto_broadcast="numpy")
        ports = ET.SubElement(layer, "input")
        for number, port in enumerate(inputs):
            ports.append(_new_port(number, port.get("precision"), _shape(port)))
        self._layers.insert([*self._layers].index(self._results[0]), layer)
        return layer

    def _connect(
        self, source: ET.Element, output: ET.Element, target: ET.Element, number: int
    ) -> None:
        ends = {
            "from-layer": source.attrib["id"],
            "from-port": output.attrib["id"],
            "to-layer": target.attrib["id"],
            "to-port": str(number),
        }
        ET.SubElement(self._edges, "edge", ends)


def _output(layer: ET.Element, number: int, precision: str | None, shape: list[str]) -> ET.Element:
    port = _new_port(number, precision, shape)
    ET.SubElement(layer, "output").append(port)
    return port


def _new_port(number: int, precision: str | None, shape: list[str]) -> ET.Element:
    port = ET.Element("port", id=str(number), precision=precision or "FP32")
    for size in shape:
        ET.SubElement(port, "dim").text = size
    return port


def _shape(port: ET.Element) -> list[str]:
    return [dimension.text or "-1" for dimension in port]


def _port(ports: ET.Element) -> ET.Element:
    [port] = ports
    return port


def _child(element: ET.Element, name: str) -> ET.Element:
    child = element.find(name)
    if child is None:
        raise ValueError(f"the model's graph has no {name}")
    return child
