"""The operation that sees a step's logits and adds numbers to them; see `model_graph`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ovchat_server.engine.genai.model_graph import HOOK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def logits_hook(callback: LogitsCallback) -> ov.OpExtension:
    """Return the operation for the `extensions` of a pipeline.

    A process can have one: of several, genai runs the first for all its pipelines. `callback` is
    called in every step, in the thread that steps. Where it asks for no offsets the operation
    returns a single 0, which costs nothing that could be measured; a number for each logit costs
    1% of a step.
    """
    # Once the model runs, the plugin clones the operation in every step to infer the shape of its
    # output, which is always the same. A clone in Python is never freed (OpenVINO 2026.4.1: 13 kB
    # each), so all of these are one.
    running = False
    clone: LogitsHook | None = None

    class LogitsHook(ov.Op):  # type: ignore[misc]  # openvino has no types
        class_type_info = ov.DiscreteTypeInfo(HOOK, "extension")

        def __init__(self, inputs: Sequence[Any] | None = None, **attributes: Any) -> None:  # noqa: ANN401
            super().__init__(self, inputs)
            self._attributes = attributes

        def validate_and_infer_types(self) -> None:
            self.set_output_type(0, self.get_input_element_type(0), ov.PartialShape([-1, -1, -1]))

        def clone_with_new_inputs(self, inputs: Sequence[Any]) -> LogitsHook:
            nonlocal clone
            if not running:
                return LogitsHook(inputs, **self._attributes)
            clone = clone or LogitsHook(inputs, **self._attributes)
            return clone

        def visit_attributes(self, visitor: Any) -> bool:  # noqa: ANN401
            visitor.on_attributes(self._attributes)
            return True

        def has_evaluate(self) -> bool:
            return True

        def get_type_info(self) -> Any:  # noqa: ANN401
            return LogitsHook.class_type_info

        def evaluate(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> bool:
            logits, tokens, positions = (item.data for item in inputs)
            size = logits.shape[-1]
            nonlocal running
            running = True
            offsets = _Offsets(outputs[0])
            make = partial(offsets.make, logits.shape)
            callback(logits.reshape(-1, size), tokens.ravel(), positions.ravel(), make)
            if not offsets.made:
                offsets.make((1, 1, 1))
            return True

    return ov.OpExtension(LogitsHook)
