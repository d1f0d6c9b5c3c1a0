"""Leaves padding out of a step of a model; see `leave_out_padding`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The model's files are the operator's own, as its code would be.
    import xml.etree.ElementTree as ET

    from ovchat_server.engine.genai.model_graph import Graph, Output

PARAMETERS = {"input_ids", "attention_mask", "position_ids", "beam_idx"}
# What repeats keys and values, of which there are fewer than queries.
REPEATING = {"Unsqueeze", "Broadcast", "Reshape"}
# Concat appends along the axis of tokens, the third of four.
TOKENS_AXIS = {"2", "-2"}
ATTENTION_RANK = 4
HIDDEN_RANK = 3


@dataclass(frozen=True, slots=True)
class _Attention:
    """What of a graph attends.

    Attributes:
        layers: They read queries, keys and values.
        appending: They append keys or values to those of earlier tokens.
    """

    layers: list[ET.Element]
    appending: list[ET.Element]


def leave_out_padding(graph: Graph, tokens: Output, positions: Output) -> bool:
    """Have padding go through nothing of a model but attention; return whether that can be.

    With prompt lookup genai pads sequences for which it found no candidates with the token -1, and
    chooses no token by the logits of padding.

        tokens -> layers -> attention -> layers -> product    becomes
        tokens -> kept -> layers -> all -> attention -> kept -> layers -> all -> product

    where "kept" gathers the rows that are not padding, and "all" puts rows back where they were
    (padding gets the row before it). genai tells attention and the product of the logits which of
    all rows are whose.

    The graph can be run by genai's paged attention alone: that has a row for each token, and all
    sequences are in one dimension, the first. A graph of another form is not changed.

    Args:
        graph: Must end in a product of matrices.
        tokens: The tokens that a step reads.
        positions: Their positions.
    """
    logits, attention = graph.result, _attention(graph)
    if attention is None or logits is None or logits.layer.get("type") != "MatMul":
        return False
    hidden = graph.inputs(logits.layer)[0]
    if (
        graph.parameters.keys() != PARAMETERS
        or len(hidden.shape) != HIDDEN_RANK
        or tokens.precision != "I64"
        # genai may replace what is added to learned embeddings of positions by all positions
        # (openvino, position_ids_replacer.cpp).
        or any(reader.get("type") == "Add" for reader in graph.readers(positions))
    ):
        return False
    rows = _find_rows(graph, tokens, positions)
    for read in (tokens, positions):
        graph.replace(read, rows.gather(read, rows.kept), *rows.readers)
    for layer in attention.appending:
        _, current = graph.inputs(layer)
        graph.feed(layer, 1, rows.gather(current, rows.all))
    for layer in attention.layers:
        query, attended = graph.inputs(layer)[0], graph.output(layer)
        graph.feed(layer, 0, rows.gather(query, rows.all))
        graph.replace(attended, rows.gather(attended, rows.kept))
    graph.feed(logits.layer, 0, rows.gather(hidden, rows.all))
    return True


def _attention(graph: Graph) -> _Attention | None:
    """Find what attends; None where there is nothing, or something else remembers tokens."""
    layers = graph.layers("ScaledDotProductAttention")
    appending, remembered = {}, set()
    for layer in layers:
        for part in graph.inputs(layer)[1:3]:
            found = _appending(graph, part)
            if found is None:
                return None
            concat, past = found
            remembered.add(past.attrib["id"])
            # Layers may share keys and values.
            appending[concat.attrib["id"]] = concat
    if not layers or remembered != {item.attrib["id"] for item in graph.layers("ReadValue")}:
        return None
    return _Attention(layers, [*appending.values()])


def _appending(graph: Graph, part: Output) -> tuple[ET.Element, ET.Element] | None:
    """Find the layer that appends keys or values to those of earlier tokens.

    Returns:
        That layer, and the one that remembers; None where they get to the attention in another way.
    """
    while part.layer.get("type") in REPEATING:
        part = graph.inputs(part.layer)[0]
    concat = part.layer
    if (
        concat.get("type") != "Concat"
        or len(part.shape) != ATTENTION_RANK
        or graph.attribute(concat, "axis") not in TOKENS_AXIS
    ):
        return None
    past, *current = (source.layer for source in graph.inputs(concat))
    if past.get("type") == "Gather":
        past = graph.inputs(past)[0].layer
    return (concat, past) if past.get("type") == "ReadValue" and len(current) == 1 else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a step.

    Attributes:
        graph: Where they are gathered.
        kept: The numbers of those that are not padding.
        all: For each, its number among those that are not padding. Padding has that of the row
            before it.
        first: 0.
        readers: What of these reads tokens and positions.
    """

    graph: Graph
    kept: Output
    all: Output
    first: Output
    readers: tuple[Output, Output]

    def gather(self, source: Output, numbers: Output) -> Output:
        """Insert a layer that gathers rows."""
        shape = ["-1", *source.shape[1:]]
        inputs = [source, numbers, self.first]
        outputs = [(source.precision, shape)]
        [gathered] = self.graph.insert("Gather", "opset8", inputs, outputs, batch_dims="0")
        return gathered


def _find_rows(graph: Graph, tokens: Output, positions: Output) -> _Rows:
    """Insert the layers that find rows of padding.

    Constants would have to be written into the file of the weights. So they are computed of a
    shape, by OpenVINO when it loads the model: how many dimensions a list has is 1.
    """

    def integers(
        kind: str, version: str, inputs: list[Output], shape: list[str], **attributes: str
    ) -> Output:
        [output] = graph.insert(kind, version, inputs, [("I64", shape)], **attributes)
        return output

    def subtract(left: Output, right: Output) -> Output:
        return integers("Subtract", "opset1", [left, right], left.shape, auto_broadcast="numpy")

    def shape_of(source: Output) -> Output:
        shape = [str(len(source.shape))]
        return integers("ShapeOf", "opset3", [source], shape, output_type="i64")

    shape = shape_of(positions)
    one = shape_of(shape_of(shape))
    zero = subtract(one, one)
    flat_shape = subtract(zero, one)

    flat = integers("Reshape", "opset1", [tokens, flat_shape], ["-1"], special_zero="false")
    [real] = graph.insert(
        "GreaterEqual", "opset1", [flat, zero], [("BOOL", ["-1"])], auto_broadcast="numpy"
    )
    places = integers("NonZero", "opset3", [real], ["1", "-1"], output_type="i64")
    kept = integers("Reshape", "opset1", [places, flat_shape], ["-1"], special_zero="false")
    marks = integers("Convert", "opset1", [real], ["-1"], destination_type="i64")
    axis = integers("Squeeze", "opset1", [zero], [])
    counts = integers("CumSum", "opset3", [marks, axis], ["-1"], exclusive="false", reverse="false")
    return _Rows(graph, kept, subtract(counts, one), zero, (flat, shape))
