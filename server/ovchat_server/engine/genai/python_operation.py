"""Operations of a model's graph that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import openvino as ov

if TYPE_CHECKING:
    from collections.abc import Sequence


class Evaluate(Protocol):
    """Computes the outputs of an operation."""

    def __call__(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        """Set the shape of each output, and write its elements.

        It must not raise: all sequences of the step would be lost.
        """
        ...


def python_operation(
    name: str, output_shapes: Sequence[Sequence[int]], evaluate: Evaluate
) -> ov.OpExtension:
    """Return an operation for the `extensions` of a pipeline.

    A process can have one of each name: of several, genai runs the first for all its pipelines.

    Args:
        name: The type of its layers, of which a graph may have one.
        output_shapes: The shapes of its outputs; -1 stands for any size. The elements of the first
            are of the type of the first input, those of others integers of 32 bits.
        evaluate: Is called in every step, in the thread that steps.
    """
    # Once the model runs, the plugin clones the operation in every step to infer the shapes of its
    # outputs, which are always the same. A clone in Python is never freed (OpenVINO 2026.4.1: 13 kB
    # each), so all of these are one.
    running = False
    clone: PythonOperation | None = None

    class PythonOperation(ov.Op):  # type: ignore[misc]  # openvino has no types
        class_type_info = ov.DiscreteTypeInfo(name, "extension")

        def __init__(self, inputs: Sequence[Any] | None = None, **attributes: Any) -> None:  # noqa: ANN401
            super().__init__(self, inputs)
            self._attributes = attributes

        def validate_and_infer_types(self) -> None:
            self.set_output_size(len(output_shapes))
            for number, shape in enumerate(output_shapes):
                kind = ov.Type.i32 if number else self.get_input_element_type(0)
                self.set_output_type(number, kind, ov.PartialShape([*shape]))

        def clone_with_new_inputs(self, inputs: Sequence[Any]) -> PythonOperation:
            nonlocal clone
            if not running:
                return PythonOperation(inputs, **self._attributes)
            clone = clone or PythonOperation(inputs, **self._attributes)
            return clone

        def visit_attributes(self, visitor: Any) -> bool:  # noqa: ANN401
            visitor.on_attributes(self._attributes)
            return True

        def has_evaluate(self) -> bool:
            return True

        def get_type_info(self) -> Any:  # noqa: ANN401
            return PythonOperation.class_type_info

        def evaluate(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> bool:
            nonlocal running
            running = True
            evaluate(outputs, inputs)
            return True

    return ov.OpExtension(PythonOperation)
