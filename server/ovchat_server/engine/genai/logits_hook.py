"""The operation that sees a step's logits, and what it adds to them; see `model_graph`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ovchat_server.engine.genai.model_graph import TAP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]


class Look(Protocol):
    """Sees the logits of a step, a row for each sequence that gets a token."""

    def __call__(
        self, logits: Floats, tokens: Integers, positions: Integers, added: Callable[[], Floats]
    ) -> None:
        """Look, and change what `added` gives, once it is called.

        It must not raise: all sequences of the step would be lost.

        Args:
            logits: Rows of a number for each token of the vocabulary. Not to be kept.
            tokens: All that the step reads, sequence by sequence.
            positions: Where they stand in their sequences.
            added: Makes what is added to the logits, all 0 at first.
        """
        ...


class _Added:
    """What the operation gives."""

    def __init__(self, output: ov.Tensor) -> None:
        self._output = output
        self.made = False

    def make(self, shape: tuple[int, ...]) -> Floats:
        self.made = True
        self._output.shape = shape
        values: Floats = self._output.data
        values[...] = 0
        return values.reshape(-1, shape[-1])


def logits_tap(look: Look) -> ov.OpExtension:
    """The operation, for the `extensions` of a pipeline; `look` is called in every step.

    One for each process: of several, genai runs the first for all its pipelines.

    It runs in the thread that steps. Where nothing is added it gives a single 0, which costs
    nothing that could be measured; as many as there are logits cost 1% of a step.
    """
    # Once it runs, the plugin clones it in every step, to ask for the shape of what it gives, which
    # is always the same. A clone in Python is never freed (OpenVINO 2026.4.1: 13 kB each), so all
    # of these are one.
    running = False
    asked: LogitsTap | None = None

    class LogitsTap(ov.Op):  # type: ignore[misc]  # openvino does not tell its types
        class_type_info = ov.DiscreteTypeInfo(TAP, "extension")

        def __init__(self, inputs: Sequence[Any] | None = None, **attributes: Any) -> None:  # noqa: ANN401
            super().__init__(self, inputs)
            self._attributes = attributes

        def validate_and_infer_types(self) -> None:
            self.set_output_type(0, self.get_input_element_type(0), ov.PartialShape([-1, -1, -1]))

        def clone_with_new_inputs(self, inputs: Sequence[Any]) -> LogitsTap:
            nonlocal asked
            if not running:
                return LogitsTap(inputs, **self._attributes)
            asked = asked or LogitsTap(inputs, **self._attributes)
            return asked

        def visit_attributes(self, visitor: Any) -> bool:  # noqa: ANN401
            visitor.on_attributes(self._attributes)
            return True

        def has_evaluate(self) -> bool:
            return True

        def get_type_info(self) -> Any:  # noqa: ANN401
            return LogitsTap.class_type_info

        def evaluate(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> bool:
            logits, tokens, positions = (item.data for item in inputs)
            size = logits.shape[-1]
            nonlocal running
            running = True
            added = _Added(outputs[0])
            make = partial(added.make, logits.shape)
            look(logits.reshape(-1, size), tokens.ravel(), positions.ravel(), make)
            if not added.made:
                added.make((1, 1, 1))
            return True

    return ov.OpExtension(LogitsTap)
