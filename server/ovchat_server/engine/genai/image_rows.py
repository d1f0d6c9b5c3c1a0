"""The file in which the rows of an encoded image go from its encoder to the engine.

It is a matrix in NumPy's format: a row for each of the image's tokens, of its embedding and, in the
last columns, its positions, counted from the image's first one. Both are numbers of 32 bits, in
which positions are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import BinaryIO

    from ovchat_server.engine.contract.prompt import PromptImage
    from ovchat_server.engine.genai.logits_hook import Floats, Integers


def write_rows(file: BinaryIO, embeddings: Floats, positions: Integers) -> None:
    """Write the rows of an image.

    Args:
        file: Is empty.
        embeddings: One for each token.
        positions: Of each token, one or more.
    """
    np.save(file, np.concatenate([embeddings, positions.astype(np.float32)], axis=1))


def read_rows(image: PromptImage, axes: int) -> tuple[Floats, Integers]:
    """Return the embeddings and positions of an image, of which a prompt may have the beginning.

    Args:
        image: Its place in the prompt.
        axes: How many positions a token has.

    Raises:
        OSError: The file is gone.
        ValueError: It holds less than the prompt.
    """
    rows = np.load(image.rows, mmap_mode="r", allow_pickle=False)[: image.length]
    if len(rows) < image.length:
        raise ValueError(f"{image.rows} has {len(rows)} rows, not {image.length}")
    return rows[:, :-axes], rows[:, -axes:].astype(np.int64)
