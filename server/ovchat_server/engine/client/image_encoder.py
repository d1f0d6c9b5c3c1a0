"""Has images encoded in a process of their own, each once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import InternalError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.encoded_images import EncodedImages
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.image_messages import (
    ENCODED,
    REJECTED,
    ImageOutput,
    ImageRequest,
    image_decoder,
)
from ovchat_server.engine.contract.times import RequestTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.backoff import Backoff
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.client.in_flight_requests import InFlightRequests
    from ovchat_server.engine.contract.engine import Caller, EngineStatus
    from ovchat_server.engine.contract.image_encoder import EncodedImage
    from ovchat_server.engine.contract.image_messages import ImageSpec
    from ovchat_server.engine.contract.observer import EngineObserver

HASH_BYTES = 8
HASH_BITS = 60
HASH_THREADS = 2

logger = logging.getLogger(__name__)


class SupervisedImageEncoder:
    """See contract.image_encoder.ImageEncoder. Starts with `start`, ends with `close`."""

    def __init__(
        self,
        spec: ImageSpec,
        on_change: Callable[[], None],
        backoff: Backoff | None = None,
        observer: EngineObserver[ImageOutput] | None = None,
    ) -> None:
        """Encode for the model of `spec`; see EngineSupervisor."""
        self._folder = Path(tempfile.gettempdir(), f"ovchat-images-{secrets.token_hex(8)}")
        spec = msgspec.structs.replace(spec, files=str(self._folder))
        self.supervisor: EngineSupervisor[ImageRequest, ImageOutput, None] = EngineSupervisor(
            spec, image_decoder(), on_change, backoff, observer
        )
        # Or somebody could make two images with one hash, for others to mistake.
        self._hash_key = secrets.token_bytes(16)
        self._encodings: dict[int, _Encoding] = {}
        self._images = EncodedImages()
        # The default pool also looks up hosts, which may take long.
        self._threads = ThreadPoolExecutor(HASH_THREADS, "image hash")

    def start(self) -> None:
        """Begin; returns at once."""
        self._folder.mkdir(mode=0o700)
        self.supervisor.start()

    async def close(self) -> None:
        """End the process; what is under way fails."""
        await self.supervisor.close()
        self._images.clear()
        self._threads.shutdown(wait=False)
        # An image may have been encoded that nobody was told of any more.
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def status(self) -> EngineStatus:
        """See engine.contract.image_encoder.ImageEncoder."""
        return self.supervisor.status

    @property
    def loaded(self) -> bool:
        """See engine.contract.image_encoder.ImageEncoder."""
        return self.supervisor.ready is not None

    async def encode(
        self, file: bytes, *, low_detail: bool = False, caller: Caller = ANONYMOUS
    ) -> EncodedImage:
        """See engine.contract.image_encoder.ImageEncoder."""
        loop = asyncio.get_running_loop()
        key = await loop.run_in_executor(self._threads, self._hash, file, low_detail)
        if image := self._images.get(key):
            return image
        encoding = self._encodings.get(key)
        if encoding is None:
            if self.status.state is ModelState.FAILED:
                self.supervisor.check_ready()
            self._images.check_room()
            in_flight = self.supervisor.in_flight
            request = ImageRequest(in_flight.new_id(), file, low_detail)
            encoding = _Encoding(request, in_flight, partial(self._images.add, key))
            in_flight.start([encoding], encoding, caller)
            self._encodings[key] = encoding
        try:
            return await encoding.image()
        finally:
            if not encoding.waiters:
                self._encodings.pop(key, None)

    def _hash(self, file: bytes, low_detail: bool) -> int:  # noqa: FBT001  an executor calls it
        digest = hashlib.blake2b(file, digest_size=HASH_BYTES, key=self._hash_key)
        digest.update(bytes([low_detail]))
        return int.from_bytes(digest.digest()) >> 8 * HASH_BYTES - HASH_BITS


class _Encoding:
    """An image that is being encoded, and those who wait for it.

    See in_flight_requests.ResultStream and ResumableRequest.
    """

    def __init__(
        self,
        request: ImageRequest,
        in_flight: InFlightRequests[ImageRequest, ImageOutput],
        keep: Callable[[ImageOutput], EncodedImage],
    ) -> None:
        self.request = request
        self.times = RequestTimes()
        self.waiters = 0
        self._in_flight = in_flight
        self._keep = keep
        self._result: asyncio.Future[EncodedImage] = asyncio.get_running_loop().create_future()

    async def image(self) -> EncodedImage:
        """Wait for the encoded image. If nobody waits any more, it is given up."""
        self.waiters += 1
        try:
            # Each on its own: one who leaves must not cancel what others wait for.
            await asyncio.wait([self._result])
        finally:
            self.waiters -= 1
            if not self.waiters:
                if not self._result.done():
                    self._in_flight.cancel(self.request.id)
                self._in_flight.forget(self.request.id)
        return self._result.result()

    def admit(self) -> None:
        """Do nothing: its output comes at the same time."""

    def put(self, output: ImageOutput) -> None:
        """Take the output."""
        if output.finish == ENCODED:
            self._result.set_result(self._keep(output))
        elif output.finish == REJECTED:
            self._result.set_exception(ImageError(output.reason, output.code))
        else:
            logger.error("an image cannot be encoded: %s", output.reason)
            self._result.set_exception(InternalError("The image could not be encoded."))

    def fail(self, error: ApiError) -> None:
        """End with an error."""
        if not self._result.done():
            self._result.set_exception(error)

    def note(self, output: ImageOutput) -> None:
        """Do nothing: there is no progress."""

    def remaining(self, steps: int, *, suspect: bool) -> ImageRequest:  # noqa: ARG002  a protocol's
        """Return the request."""
        return self.request
