"""Encodes images with genai, for prompts that are put together elsewhere.

genai encodes images when it adds a request, and has no other way in, nor any way out: nobody gets
what it makes of them. So it loads the model's folder with another language model, which tells what
it is given of a prompt that is nothing but the image: its rows, with all that the model's family
puts around an image, and their positions. They are the same in any longer prompt.

Adding a request and a step hold the GIL: the process that does it can do nothing else meanwhile.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import openvino_genai as genai
from openvino import opset13 as op

from ovchat_server.domain.content import ImageError
from ovchat_server.engine.genai.embedding_rows import AXES, EMBEDDINGS, POSITIONS
from ovchat_server.engine.genai.graph_parts import one_head, parameter
from ovchat_server.engine.genai.logits_hook import HOOK, insert_logits_hook
from ovchat_server.engine.genai.model_graph import Graph
from ovchat_server.engine.genai.python_operation import python_operation
from ovchat_server.engine.genai.sizes import block_size
from ovchat_server.engine.genai.vision_folder import LANGUAGE_MODEL, VisionFolder
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ovchat_server.engine.genai.logits_hook import Floats, Integers

# Tokens of the largest image.
MAX_TOKENS = 1 << 16
HEAD_SIZE = 32
# Stands for the image in a text.
IMAGE = "<ov_genai_image_0>"
# Otherwise the tokenizer puts its special tokens around the text.
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"


class ImageEncoder:
    """Encodes the images of one model, one at a time."""

    def __init__(self, folder: str, properties: Mapping[str, str | int | float | bool]) -> None:
        """Load what encodes images of the model in `folder`, with OpenVINO's properties.

        A process can have one: see python_operation.

        Raises:
            ModelLoadError: The model cannot be served.
            RuntimeError: genai cannot load it.
        """
        rows = VisionFolder(Path(folder)).rows
        self._hidden_size, self._axes = rows.hidden_size, rows.axes
        self._embeddings: list[Floats] = []
        self._positions: list[Integers] = []
        config = genai.SchedulerConfig()
        config.num_kv_blocks = MAX_TOKENS // block_size("CPU") + 1
        config.max_num_batched_tokens = MAX_TOKENS
        # It would leave out what it knows of an image, by ten numbers of each row.
        config.enable_prefix_caching = False
        tokenizer = genai.Tokenizer(folder)
        tokenizer.set_chat_template(TEMPLATE)
        with tempfile.TemporaryDirectory(prefix="ovchat-") as place:
            _fill(Path(place), Path(folder), self._hidden_size, self._axes)
            self._pipeline = genai.ContinuousBatchingPipeline(
                place,
                tokenizer,
                config,
                "CPU",
                **properties,
                extensions=[python_operation(HOOK, [[-1, -1, -1]], self._observe)],
            )

    def encode(self, pixels: NDArray[np.uint8]) -> tuple[Floats, Integers]:
        """Return the embeddings of an image, and their positions, counted from the first.

        Args:
            pixels: Height, width, RGB; neither side is 0.

        Raises:
            ImageError: genai refuses the image, or it takes more than MAX_TOKENS.
            RuntimeError: A step failed; nothing can be encoded any more.
        """
        config = genai.GenerationConfig()
        config.max_new_tokens = 1
        config.ignore_eos = True
        self._embeddings, self._positions = [], []
        try:
            # Kept: genai ends a request whose handle is destroyed.
            handle = self._pipeline.add_request(0, IMAGE, [ov.Tensor(pixels)], config)
        except RuntimeError as error:
            reason = error_text(error)
            raise ImageError(f"cannot be encoded by this model: {reason}") from error
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        # Or it keeps the tokens of every image.
        self._pipeline.finish_chat()
        if handle.get_status() != genai.GenerationStatus.FINISHED:
            raise ImageError(f"takes more than {MAX_TOKENS} tokens", "image_too_large")
        return np.concatenate(self._embeddings), np.concatenate(self._positions)

    def _observe(self, outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        _, embeddings, positions = (item.data for item in inputs)
        self._embeddings.append(embeddings.reshape(-1, self._hidden_size).copy())
        self._positions.append(positions.reshape(self._axes, -1).T.copy())
        outputs[0].shape = (1, 1, 1)
        outputs[0].data[...] = 0


def _fill(place: Path, folder: Path, hidden_size: int, axes: int) -> None:
    """Fill an empty folder with a model that tells what it is given, and with all else."""
    for file in folder.resolve().iterdir():
        if file.name not in (LANGUAGE_MODEL, Path(LANGUAGE_MODEL).with_suffix(".bin").name):
            (place / file.name).symlink_to(file)
    path = place / LANGUAGE_MODEL
    ov.save_model(_model(hidden_size, axes), path)
    graph = Graph(path)
    insert_logits_hook(graph, graph.parameters[EMBEDDINGS], graph.parameters[POSITIONS])
    graph.write(path)


def _model(hidden_size: int, axes: int) -> ov.Model:
    """Return a model of one logit, which is 0. It has attention because genai requires it."""
    rows = parameter(EMBEDDINGS, [-1, -1, hidden_size], np.float32)
    shape = [AXES, -1, -1] if axes == AXES else [-1, -1]
    positions = parameter(POSITIONS, shape, np.int64)
    beams = parameter("beam_idx", [-1], np.int32)
    narrow = op.matmul(rows, _zeros(hidden_size, HEAD_SIZE), False, False)  # noqa: FBT003
    hidden, sinks = one_head(narrow, rows, beams, HEAD_SIZE)
    logits = op.matmul(hidden, _zeros(1, HEAD_SIZE), False, True)  # noqa: FBT003
    logits.output(0).set_names({"logits"})
    return ov.Model([op.result(logits)], sinks, [rows, positions, beams], "image_encoder")


def _zeros(*shape: int) -> ov.Node:
    return op.constant(np.zeros(shape, np.float32))
