"""What genai is given of a prompt: tokens, or rows of embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import openvino as ov

from ovchat_server.engine.genai.embedding_rows import TOLD, RowFormat
from ovchat_server.engine.genai.image_rows import read_rows
from ovchat_server.engine.genai.vision_folder import TEXT_EMBEDDINGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ovchat_server.engine.contract.prompt import Prompt


class PromptInput(Protocol):
    """Makes what genai is given of a prompt.

    Attributes:
        as_tokens: Whether that are its tokens.
    """

    as_tokens: bool

    def tensor(self, prompt: Prompt) -> ov.Tensor:
        """Return what `add_request` gets."""
        ...

    def told(self, prompt: Prompt) -> Sequence[int]:
        """Return what the logits hook is told of its tokens when they are read."""
        ...


class TokenInput:
    """Prompts as tokens."""

    as_tokens = True

    def tensor(self, prompt: Prompt) -> ov.Tensor:
        """See PromptInput.

        genai names KV blocks by all 64 bits of their tokens, of which OpenVINO's CPU plugin, and so
        the model, reads the lower 32. So a salt above the first token makes another key for the
        prefix cache, and the same token for the model (openvino.genai 2026.4.1; should a step read
        something else after all, row_owners notices).
        """
        return ov.Tensor(np.array([prompt.cache_ids()], dtype=np.int64))

    def told(self, prompt: Prompt) -> Sequence[int]:
        """See PromptInput."""
        return prompt.tokens


class RowInput:
    """Prompts as rows of embeddings; see embedding_rows."""

    as_tokens = False

    def __init__(
        self, folder: str, rows: RowFormat, properties: Mapping[str, str | int | float | bool]
    ) -> None:
        """Load the embeddings of text of the model in `folder`, with OpenVINO's properties."""
        path = Path(folder) / TEXT_EMBEDDINGS
        self._texts = ov.Core().compile_model(path, "CPU", {**properties})
        self._rows = rows

    def tensor(self, prompt: Prompt) -> ov.Tensor:
        """See PromptInput.

        Raises:
            OSError: The rows of an image are gone: nobody waits for the prompt any more.
            ValueError: They are not those of such an image.
        """
        tokens = np.array(prompt.tokens, dtype=np.int64)
        for image in prompt.images:
            # A placeholder need not be a token of the model.
            tokens[image.start : image.end] = 0
        embeddings = self._rows.scaled(self._texts(tokens[None])[0])
        offsets = np.empty((len(tokens), self._rows.axes), np.int64)
        offset, end = prompt.first_position, 0
        paths = {image.rows for image in prompt.images}
        files = {path: read_rows(path, self._rows.axes) for path in paths}
        for image in prompt.images:
            rows, positions = files[image.rows]
            if len(rows) < image.length:
                raise ValueError(f"{image.rows} has {len(rows)} rows, not {image.length}")
            embeddings[0, image.start : image.end] = rows[: image.length]
            offsets[end : image.start] = offset
            behind = positions[: image.length] - np.arange(image.length)[:, None]
            offsets[image.start : image.end] = offset + behind
            offset += positions.max() + 1 - len(positions)
            end = image.end
        offsets[end:] = offset
        return ov.Tensor(self._rows.rows(embeddings, prompt.cache_ids(), offsets[None]))

    def told(self, prompt: Prompt) -> Sequence[int]:
        """See PromptInput."""
        return [number & TOLD for number in prompt.cache_ids()]
