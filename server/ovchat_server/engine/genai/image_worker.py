"""What processes run that encode images: one at a time, in the order in which they came."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.models import EngineLoad
from ovchat_server.engine.contract.image_messages import (
    ENCODED,
    REJECTED,
    ImageOutput,
    ImageRequest,
    ImageSpec,
    image_decoder,
)
from ovchat_server.engine.contract.messages import BROKEN, Capabilities, EngineMemory, Ready, Report
from ovchat_server.engine.genai.image_decoding import decode_image
from ovchat_server.engine.genai.image_encoder import ImageEncoder
from ovchat_server.engine.genai.image_rows import write_rows

if TYPE_CHECKING:
    from ovchat_server.engine.contract.worker import Worker, WorkerContext
    from ovchat_server.engine.genai.logits_hook import Floats, Integers

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
        self._folder = Path(folder)
        self._context = context
        self._waiting: dict[int, ImageRequest] = {}
        self._admitted: int | None = None
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
        """Admit the image that came first, and in the next step encode it.

        Raises:
            RuntimeError: Nothing can be encoded any more.
        """
        identifier = next(iter(self._waiting))
        if identifier != self._admitted:
            # Before it takes its time: it does not wait any more.
            self._admitted = identifier
            # Should the process die of it, it is blamed for that.
            self._context.isolate(identifier)
            return Report([], self.load(), admitted=[identifier])
        return Report([self._output(self._waiting.pop(identifier))], self.load())

    def load(self) -> EngineLoad:
        """Return that nothing is known of it: its steps are of one image."""
        return EngineLoad()

    def _output(self, request: ImageRequest) -> ImageOutput:
        try:
            pixels = decode_image(request.file, low_detail=request.low_detail)
            embeddings, positions = self._encoder.encode(pixels)
        except ImageError as error:
            return ImageOutput(request.id, REJECTED, error.complaint, error.code)
        try:
            file = self._write(embeddings, positions)
        except OSError as error:
            return ImageOutput(request.id, BROKEN, f"its rows cannot be written: {error}")
        self._remember(request.id, file)
        return ImageOutput(
            request.id,
            ENCODED,
            rows=str(file),
            length=len(embeddings),
            positions=int(positions.max()) + 1,
            size=file.stat().st_size,
        )

    def _write(self, embeddings: Floats, positions: Integers) -> Path:
        # Folders for temporary files are cleaned on some systems.
        self._folder.mkdir(mode=0o700, exist_ok=True)
        number, name = tempfile.mkstemp(suffix=".npy", dir=self._folder)
        try:
            with os.fdopen(number, "wb") as file:
                write_rows(file, embeddings, positions)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        return Path(name)

    def _remember(self, identifier: int, file: Path) -> None:
        self._files[identifier] = file
        if len(self._files) > REMEMBERED:
            del self._files[next(iter(self._files))]


def load(spec: bytes, context: WorkerContext) -> Worker[ImageRequest, ImageOutput, None]:
    """Load what encodes the images of an ImageSpec; see engine.contract.worker.LoadWorker."""
    decoded = msgspec.msgpack.decode(spec, type=ImageSpec)
    # Before there are other threads, which inherit it.
    os.nice(NICENESS)
    encoder = ImageEncoder(decoded.path, decoded.properties)
    weights = sum(file.stat().st_size for file in Path(decoded.path).glob(WEIGHTS))
    return ImageWorker(encoder, decoded.files, weights, context)
