"""Has images encoded in a process of their own, each once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import shutil
import tempfile
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.domain.errors import InternalError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.supervisor import EngineSupervisor
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.image_encoder import EncodedImage, ImageError
from ovchat_server.engine.contract.image_messages import (
    ENCODED,
    REJECTED,
    ImageOutput,
    ImageRequest,
    image_decoder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.backoff import Backoff
    from ovchat_server.domain.errors import ApiError
    from ovchat_server.engine.client.in_flight_requests import InFlightRequests
    from ovchat_server.engine.contract.engine import Caller, EngineStatus
    from ovchat_server.engine.contract.image_messages import ImageSpec

# Of files with encoded images that no request holds any more.
MAX_CACHED_BYTES = 256 << 20
HASH_BYTES = 8
HASH_BITS = 60

logger = logging.getLogger(__name__)


class SupervisedImageEncoder:
    """See contract.image_encoder.ImageEncoder. Starts with `start`, ends with `close`."""

    def __init__(
        self, spec: ImageSpec, on_change: Callable[[], None], backoff: Backoff | None = None
    ) -> None:
        """Encode for the model of `spec`; `on_change` learns of every change of state."""
        self._folder = Path(tempfile.gettempdir(), f"ovchat-images-{secrets.token_hex(8)}")
        spec = msgspec.structs.replace(spec, files=str(self._folder))
        self.supervisor: EngineSupervisor[ImageRequest, ImageOutput, None] = EngineSupervisor(
            spec, image_decoder(), on_change, backoff
        )
        # Or somebody could make two images with one hash, for others to mistake.
        self._hash_key = secrets.token_bytes(16)
        self._encodings: dict[int, _Encoding] = {}
        self._cache = _Cache()

    def start(self) -> None:
        """Begin; returns at once."""
        self._folder.mkdir(mode=0o700)
        self.supervisor.start()

    async def close(self) -> None:
        """End the process; what is under way fails."""
        await self.supervisor.close()
        self._cache.clear()
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
        key = await asyncio.to_thread(self._hash, file, low_detail=low_detail)
        if image := self._cache.get(key):
            return image
        encoding = self._encodings.get(key)
        if encoding is None:
            if self.status.state is ModelState.FAILED:
                self.supervisor.check_ready()
            in_flight = self.supervisor.in_flight
            request = ImageRequest(in_flight.new_id(), file, low_detail)
            encoding = _Encoding(request, in_flight, partial(self._cache.add, key))
            in_flight.start([encoding], encoding, caller)
            self._encodings[key] = encoding
        try:
            return await encoding.image()
        finally:
            if not encoding.waiters:
                self._encodings.pop(key, None)

    def _hash(self, file: bytes, *, low_detail: bool) -> int:
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


@dataclass(slots=True)
class _Cached:
    image: EncodedImage
    size: int


class _Cache:
    """Encoded images by their hashes; those used last are kept."""

    def __init__(self) -> None:
        self._images: OrderedDict[int, _Cached] = OrderedDict()
        self._size = 0

    def get(self, key: int) -> EncodedImage | None:
        """Return an image, if it is there."""
        if found := self._images.get(key):
            self._images.move_to_end(key)
            return found.image
        return None

    def add(self, key: int, output: ImageOutput) -> EncodedImage:
        """Keep an image, and others only as far as there is room."""
        image = EncodedImage(key, output.length, output.positions, output.rows)
        # As soon as neither the cache nor a request holds it; at the latest when the server ends.
        weakref.finalize(image, Path(output.rows).unlink, missing_ok=True)
        self._images[key] = _Cached(image, output.bytes)
        self._size += output.bytes
        while self._size > MAX_CACHED_BYTES and len(self._images) > 1:
            _, oldest = self._images.popitem(last=False)
            self._size -= oldest.size
        return image

    def clear(self) -> None:
        """Forget all images."""
        self._images.clear()
        self._size = 0
