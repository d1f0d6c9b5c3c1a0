"""Changes a model's graph (OpenVINO IR, XML) without reading its weights."""

from __future__ import annotations

# The model's files are the operator's own, as its code would be.
import xml.etree.ElementTree as ET
from collections import defaultdict
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
        # To look them up: a graph may have tens of thousands.
        self._by_id = {layer.get("id", ""): layer for layer in self._layers}
        self._inputs: defaultdict[str, list[ET.Element]] = defaultdict(list)
        for edge in self._edges:
            self._inputs[edge.get("to-layer", "")].append(edge)
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
        return self._source(self._result_edge())

    def show(self, output: Output) -> None:
        """Have the only result show another output, under its name."""
        shown = self.result
        if shown and (names := shown.port.attrib.pop("names", None)):
            output.port.set("names", names)
        edge, [result] = self._result_edge(), self._results
        _begin(edge, output)
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
        identifier = 1 + max(map(int, self._by_id))
        layer = ET.Element(
            "layer",
            id=str(identifier),
            name=f"ovchat/{kind}/{identifier}",
            type=kind,
            version=version,
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
        self._by_id[layer.attrib["id"]] = layer
        return [Output(layer, port) for port in given]

    def replace(self, old: Output, new: Output, *but: Output) -> None:
        """Have all layers that read an output read another one.

        Args:
            old: An output of a layer that has no others.
            new: What is read instead. Its own layer is left alone, it may read `old`.
            but: The layers that give these are left alone, too.
        """
        left_alone = {output.layer.get("id") for output in (new, *but)}
        for edge in self._edges:
            if (
                edge.get("from-layer") == old.layer.get("id")
                and edge.get("to-layer") not in left_alone
            ):
                _begin(edge, new)

    def layers(self, kind: str) -> list[ET.Element]:
        """Return all layers of a type."""
        return [layer for layer in self._layers if layer.get("type") == kind]

    def output(self, layer: ET.Element) -> Output:
        """Return the output of a layer that has no others."""
        return Output(layer, _port(_child(layer, "output")))

    def readers(self, output: Output) -> list[ET.Element]:
        """Return the layers that read the output of a layer that has no others."""
        source = output.layer.get("id")
        edges = (edge for edge in self._edges if edge.get("from-layer") == source)
        return [self._by_id[edge.attrib["to-layer"]] for edge in edges]

    def inputs(self, layer: ET.Element) -> list[Output]:
        """Return what a layer reads."""
        return [self._source(edge) for edge in self._input_edges(layer)]

    def attribute(self, layer: ET.Element, name: str) -> str | None:
        """Return an attribute of a layer; None where it has none of the name."""
        data = layer.find("data")
        return None if data is None else data.get(name)

    def feed(self, layer: ET.Element, number: int, source: Output) -> None:
        """Have one input of a layer read another output."""
        _begin(self._input_edges(layer)[number], source)

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
        [edge] = self._input_edges(result)
        return edge

    def _input_edges(self, layer: ET.Element) -> list[ET.Element]:
        return sorted(self._inputs[layer.attrib["id"]], key=_input_number)

    def _source(self, edge: ET.Element) -> Output:
        layer = self._by_id[edge.attrib["from-layer"]]
        ports = _child(layer, "output")
        [port] = [port for port in ports if port.get("id") == edge.get("from-port")]
        return Output(layer, port)

    def _connect(self, source: Output, target: ET.Element, number: int) -> None:
        ends = {
            "from-layer": source.layer.attrib["id"],
            "from-port": source.port.attrib["id"],
            "to-layer": target.attrib["id"],
            "to-port": str(number),
        }
        self._inputs[ends["to-layer"]].append(ET.SubElement(self._edges, "edge", ends))


def _begin(edge: ET.Element, source: Output) -> None:
    edge.set("from-layer", source.layer.attrib["id"])
    edge.set("from-port", source.port.attrib["id"])


def _input_number(edge: ET.Element) -> int:
    return int(edge.attrib["to-port"])


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
