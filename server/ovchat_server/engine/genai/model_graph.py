"""Changes a model's graph (OpenVINO IR, XML) without reading its weights."""

from __future__ import annotations

# The model's files are the operator's own, as its code would be.
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a layer."""

    layer: ET.Element
    port: ET.Element

    @property
    def precision(self) -> str:
        """The type of its elements, such as FP32."""
        return self.port.get("precision") or "FP32"

    @property
    def shape(self) -> list[str]:
        """Its dimensions; "-1" stands for any size."""
        return [dimension.text or "-1" for dimension in self.port]


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
        self.parameters = {
            layer.get("name", ""): Output(layer, _port(_child(layer, "output")))
            for layer in self._layers
            if layer.get("type") == "Parameter"
        }

    @property
    def result(self) -> Output | None:
        """What the result shows; None where there is not exactly one result."""
        if len(self._results) != 1:
            return None
        edge = self._result_edge()
        [layer] = [layer for layer in self._layers if layer.get("id") == edge.get("from-layer")]
        ports = _child(layer, "output")
        [port] = [port for port in ports if port.get("id") == edge.get("from-port")]
        return Output(layer, port)

    def show(self, output: Output) -> None:
        """Have the only result show another output, under its name."""
        shown = self.result
        if shown and (names := shown.port.attrib.pop("names", None)):
            output.port.set("names", names)
        edge, [result] = self._result_edge(), self._results
        edge.set("from-layer", output.layer.attrib["id"])
        edge.set("from-port", output.port.attrib["id"])
        _resize(_port(_child(result, "input")), output.shape)

    def insert(
        self,
        kind: str,
        version: str,
        inputs: Sequence[Output],
        outputs: Sequence[tuple[str, list[str]]],
        **attributes: str,
    ) -> list[Output]:
        """Insert a layer, and return its outputs.

        Args:
            kind: The type of the layer.
            version: The set of operations that it is of.
            inputs: What it reads.
            outputs: The type of elements and the shape of each output.
            attributes: Those of the layer.
        """
        identifier = 1 + max(int(layer.attrib["id"]) for layer in self._layers)
        layer = ET.Element(
            "layer", id=str(identifier), name=f"ovchat/{kind}", type=kind, version=version
        )
        if attributes:
            ET.SubElement(layer, "data", attributes)
        ports = ET.SubElement(layer, "input")
        for number, source in enumerate(inputs):
            ports.append(_new_port(number, source.precision, source.shape))
            self._connect(source, layer, number)
        given = ET.SubElement(layer, "output")
        for number, (precision, shape) in enumerate(outputs, len(inputs)):
            given.append(_new_port(number, precision, shape))
        # Layers stand behind those that they read.
        place = max([*self._layers].index(source.layer) for source in inputs) + 1
        self._layers.insert(place, layer)
        return [Output(layer, port) for port in given]

    def replace(self, old: Output, new: Output, but: Output | None = None) -> None:
        """Have all layers that read an output read another one, except the one that gives `but`.

        Args:
            old: An output of a layer that has no others.
            new: What is read instead.
            but: `new` itself if it is None.
        """
        left_alone = (but or new).layer.get("id")
        for edge in self._edges:
            if edge.get("from-layer") == old.layer.get("id") and edge.get("to-layer") != left_alone:
                edge.set("from-layer", new.layer.attrib["id"])
                edge.set("from-port", new.port.attrib["id"])

    def resize(self, parameter: Output, shape: list[str]) -> None:
        """Change the shape of a parameter."""
        sizes = ("?" if size == "-1" else size for size in shape)
        _child(parameter.layer, "data").set("shape", ",".join(sizes))
        _resize(parameter.port, shape)

    def write(self, path: Path) -> None:
        """Write it to a file."""
        self._tree.write(path)

    def _result_edge(self) -> ET.Element:
        [result] = self._results
        [edge] = [edge for edge in self._edges if edge.get("to-layer") == result.get("id")]
        return edge

    def _connect(self, source: Output, target: ET.Element, number: int) -> None:
        ends = {
            "from-layer": source.layer.attrib["id"],
            "from-port": source.port.attrib["id"],
            "to-layer": target.attrib["id"],
            "to-port": str(number),
        }
        ET.SubElement(self._edges, "edge", ends)


def _new_port(number: int, precision: str, shape: list[str]) -> ET.Element:
    port = ET.Element("port", id=str(number), precision=precision)
    _resize(port, shape)
    return port


def _resize(port: ET.Element, shape: list[str]) -> None:
    for dimension in [*port]:
        port.remove(dimension)
    for size in shape:
        ET.SubElement(port, "dim").text = size


def _port(ports: ET.Element) -> ET.Element:
    [port] = ports
    return port


def _child(element: ET.Element, name: str) -> ET.Element:
    child = element.find(name)
    if child is None:
        raise ValueError(f"the model's graph has no {name}")
    return child
