"""A model that makes vectors of texts, by OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov

from ovchat_server.engine.contract.pooling_engine import TOKEN_BYTES
from ovchat_server.engine.contract.pooling_messages import PoolingInput
from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.device_errors import device_advice, may_pass
from ovchat_server.engine.pooling.graph import (
    BEAMS,
    MASK,
    OPTIONAL,
    POSITIONS,
    REQUIRED,
    TOKENS,
    TYPES,
    reduce_to_vectors,
)
from ovchat_server.engine.pooling.poolings import POOLINGS
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ovchat_server.engine.contract.pooling_messages import PoolingSpec
    from ovchat_server.engine.pooling.poolings import Floats

GRAPH = "openvino_model.xml"
WEIGHTS = "openvino_model.bin"
# Two texts, so that padding and the mask are tried, too.
PROBE = (PoolingInput(0, bytes(8)), PoolingInput(1, bytes(4)))


class PoolingModel:
    """Makes vectors of texts, a batch at a time.

    Attributes:
        size: How many numbers a vector has.
        weight_bytes: The size of its weights' file.
    """

    def __init__(self, spec: PoolingSpec) -> None:
        """Load the model of a spec, and try it.

        Raises:
            ModelLoadError: It cannot be served as the spec says.
            RuntimeError: It cannot be loaded now.
        """
        self._pad_token = spec.pad_token
        by_graph = spec.answer_tokens or spec.pooling == "graph"
        self._pool = None if by_graph else POOLINGS.get(spec.pooling)
        path = Path(spec.path)
        try:
            self._load(path / GRAPH, spec)
            self.size = self.try_out()
        except RuntimeError as error:
            text = error_text(error)
            if may_pass(text):
                raise
            advice = device_advice(text, spec.device) or f"export or copy {GRAPH} and .bin anew: "
            raise ModelLoadError(f"{advice}{text}") from error
        self.weight_bytes = (path / WEIGHTS).stat().st_size

    def _load(self, path: Path, spec: PoolingSpec) -> None:
        core = ov.Core()
        model = core.read_model(path)
        reduce_to_vectors(model, spec)
        properties = {"PERFORMANCE_HINT": "LATENCY"} | spec.properties
        compiled = core.compile_model(model, spec.device, properties)
        self._request = compiled.create_infer_request()
        self._stateful = bool(model.get_sinks())
        self._inputs = {
            name: given.get_element_type().to_dtype()
            for given in compiled.inputs
            for name in given.get_names() & {*REQUIRED, *OPTIONAL}
        }

    def try_out(self) -> int:
        """Run it on texts that any model can run, and return the size of their vectors.

        Raises:
            RuntimeError: OpenVINO cannot compute them.
        """
        return len(self.run(PROBE)[0])

    def run(self, batch: Sequence[PoolingInput]) -> list[Floats]:
        """Return the vector of each text.

        Raises:
            RuntimeError: OpenVINO cannot compute them.
        """
        lengths = [len(text.tokens) // TOKEN_BYTES for text in batch]
        if self._stateful:
            # Or each text would continue one of the last batch.
            self._request.reset_state()
        # A view, which the next batch changes.
        output = self._request.infer(self._arrays(batch, lengths), share_outputs=True)[0]
        if self._pool is None:
            return [*output.astype(np.float32)]
        return [
            self._pool(row[:length].astype(np.float32, copy=False)).copy()
            for row, length in zip(output, lengths, strict=True)
        ]

    def _arrays(
        self, batch: Sequence[PoolingInput], lengths: Sequence[int]
    ) -> dict[str, NDArray[np.generic]]:
        shape = len(batch), max(lengths)
        tokens = np.full(shape, self._pad_token, np.int64)
        mask = np.zeros(shape, np.int64)
        types = np.zeros(shape, np.int64)
        for row, (text, length) in enumerate(zip(batch, lengths, strict=True)):
            tokens[row, :length] = np.frombuffer(text.tokens, "<i4")
            mask[row, :length] = 1
            if text.second:
                types[row, text.second : length] = 1
        arrays = {
            TOKENS: tokens,
            MASK: mask,
            TYPES: types,
            POSITIONS: np.tile(np.arange(shape[1]), (shape[0], 1)),
            BEAMS: np.arange(shape[0]),
        }
        return {name: arrays[name].astype(kind) for name, kind in self._inputs.items()}
