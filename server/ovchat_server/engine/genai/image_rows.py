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

    from ovchat_server.engine.genai.logits_hook import Floats, Integers


def write_rows(file: BinaryIO, embeddings: Floats, positions: Integers) -> None:
    """Write the rows of an image.

    Args:
        file: Is empty.
        embeddings: One for each token.
        positions: Of each token, one or more.
    """
    np.save(file, np.concatenate([embeddings, positions.astype(np.float32)], axis=1))


def read_rows(path: str, axes: int) -> tuple[Floats, Integers]:
    """Return the embeddings and positions of an image.

    Args:
        path: Of the file.
        axes: How many positions a token has.

    Raises:
        OSError: The file is gone.
    """
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    return rows[:, :-axes], rows[:, -axes:].astype(np.int64)
