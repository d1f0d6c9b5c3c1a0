"""What processes run that encode images: one at a time, in the order in which they came."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.image_encoder import ImageError
from ovchat_server.engine.contract.image_messages import (
    ENCODED,
    REJECTED,
    ImageOutput,
    ImageRequest,
    ImageSpec,
    image_decoder,
)
from ovchat_server.engine.contract.messages import Capabilities, EngineMemory, Ready, Report
from ovchat_server.engine.genai.image_decoding import decode_image
from ovchat_server.engine.genai.image_encoder import ImageEncoder
from ovchat_server.engine.genai.image_rows import write_rows
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from ovchat_server.engine.contract.worker import Worker, WorkerContext

WEIGHTS = "openvino_vision*.bin"
# Streams must not wait for images: beside an engine that is always busy, it leaves an encoder a
# tenth of the processors.
NICENESS = 10
# Outputs that may be on their way when their request is cancelled.
REMEMBERED = 64


class ImageWorker:
    """See engine.contract.worker.Worker."""

    def __init__(
        self, encoder: ImageEncoder, folder: str, weight_bytes: int, context: WorkerContext
    ) -> None:
        """Encode with an encoder that was loaded, into files in `folder`."""
        self.decoder = image_decoder()
        self.ready = Ready(None, self.load(), Capabilities(), EngineMemory(weight_bytes))
        self._encoder = encoder
        self._folder = folder
        self._context = context
        self._waiting: dict[int, ImageRequest] = {}
        self._files: dict[int, Path] = {}

    def add(self, request: ImageRequest) -> None:
        """Take an image."""
        self._waiting[request.id] = request

    def cancel(self, identifier: int) -> None:
        """Give an image up."""
        if not self._waiting.pop(identifier, None) and (file := self._files.pop(identifier, None)):
            # Nobody gets the output that was sent.
            file.unlink(missing_ok=True)

    def poll(self) -> None:
        """Do nothing: nothing is done beside the steps."""

    @property
    def busy(self) -> bool:
        """Return whether an image waits."""
        return bool(self._waiting)

    def step(self) -> Report[ImageOutput]:
        """Encode the image that came first."""
        request = self._waiting.pop(next(iter(self._waiting)))
        # Should the process die of an image, it is blamed for that.
        self._context.isolate(request.id)
        return Report([self._output(request)], self.load(), admitted=[request.id])

    def load(self) -> EngineLoad:
        """Return that nothing is known of it: its steps are of one image."""
        return EngineLoad()

    def _output(self, request: ImageRequest) -> ImageOutput:
        try:
            pixels = decode_image(request.file, low_detail=request.low_detail)
            embeddings, positions = self._encoder.encode(pixels)
        except ImageError as error:
            return _rejected(request, error)
        except (RuntimeError, ValueError) as error:
            reason = error_text(error)
            sys.stderr.write(f"an image cannot be encoded: {reason}\n")
            return _rejected(request, ImageError(f"cannot be encoded by this model: {reason}"))
        number, name = tempfile.mkstemp(suffix=".npy", dir=self._folder)
        with os.fdopen(number, "wb") as file:
            write_rows(file, embeddings, positions)
            size = file.tell()
        self._remember(request.id, Path(name))
        count = int(positions.max()) + 1
        return ImageOutput(
            request.id, ENCODED, rows=name, length=len(embeddings), positions=count, bytes=size
        )

    def _remember(self, identifier: int, file: Path) -> None:
        self._files[identifier] = file
        if len(self._files) > REMEMBERED:
            del self._files[next(iter(self._files))]


def _rejected(request: ImageRequest, error: ImageError) -> ImageOutput:
    return ImageOutput(request.id, REJECTED, error.complaint, error.code)


def load(spec: bytes, context: WorkerContext) -> Worker[ImageRequest, ImageOutput, None]:
    """Load what encodes the images of an ImageSpec; see engine.contract.worker.LoadWorker."""
    decoded = msgspec.msgpack.decode(spec, type=ImageSpec)
    # Before there are other threads, which inherit it.
    os.nice(NICENESS)
    encoder = ImageEncoder(decoded.path, decoded.properties)
    weights = sum(file.stat().st_size for file in Path(decoded.path).glob(WEIGHTS))
    return ImageWorker(encoder, decoded.files, weights, context)
