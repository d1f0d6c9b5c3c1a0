"""The operation that sees a step's logits and adds numbers to them; see `insert_logits_hook`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ovchat_server.engine.genai.python_operation import python_operation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import openvino as ov

    from ovchat_server.engine.genai.model_graph import Graph, Output

HOOK = "LogitsHook"
# One number where nothing is added, else as many as there are logits.
ANY_SHAPE = ["-1", "-1", "-1"]

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]


class LogitsCallback(Protocol):
    """Is called with the logits of a step, a row for each sequence that gets a token."""

    def __call__(
        self, logits: Floats, tokens: Integers, positions: Integers, offsets: Callable[[], Floats]
    ) -> None:
        """Read the logits, and write into the array that `offsets` returns.

        It must not raise: all sequences of the step would be lost.

        Args:
            logits: Rows by tokens of the vocabulary. Valid during the call.
            tokens: All tokens that the step reads, sequence by sequence.
            positions: Their positions in their sequences.
            offsets: Allocates what is added to the logits: an array of their shape, all 0.
        """
        ...


class _Offsets:
    """The operation's output."""

    def __init__(self, output: ov.Tensor) -> None:
        self._output = output
        self.made = False

    def make(self, shape: tuple[int, ...]) -> Floats:
        self.made = True
        self._output.shape = shape
        values: Floats = self._output.data
        values[...] = 0
        return values.reshape(-1, shape[-1])


def insert_logits_hook(graph: Graph, tokens: Output, positions: Output) -> bool:
    """Insert the operation before the result of a graph; return whether it can be.

        Result <- MatMul    becomes
        Result <- Add(MatMul, LogitsHook(MatMul, tokens, positions))

    genai still recognizes this end of a graph, and computes logits only for tokens after which the
    next one is chosen (openvino.genai, utils.cpp, find_llm_matmul).

    Args:
        graph: Must end in a product of matrices.
        tokens: The tokens that a step reads.
        positions: Their positions.
    """
    logits = graph.result
    if logits is None or logits.layer.get("type") != "MatMul":
        return False
    precision, inputs = logits.precision, [logits, tokens, positions]
    [added] = graph.insert(HOOK, "extension", inputs, [(precision, ANY_SHAPE)])
    [total] = graph.insert(
        "Add", "opset1", [logits, added], [(precision, logits.shape)], auto_broadcast="numpy"
    )
    graph.show(total)
    # genai finds the logits by the name of this output.
    total.port.attrib.setdefault("names", "logits")
    return True


def logits_hook(callback: LogitsCallback) -> ov.OpExtension:
    """Return the operation, which calls `callback` in every step; see python_operation.

    Where that asks for no offsets the operation returns a single 0, which costs nothing that could
    be measured; a number for each logit costs 1% of a step.
    """

    def evaluate(outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        logits, tokens, positions = (item.data for item in inputs)
        offsets = _Offsets(outputs[0])
        make = partial(offsets.make, logits.shape)
        callback(logits.reshape(-1, logits.shape[-1]), tokens.ravel(), positions.ravel(), make)
        if not offsets.made:
            offsets.make((1, 1, 1))

    return python_operation(HOOK, [[-1, -1, -1]], evaluate)
