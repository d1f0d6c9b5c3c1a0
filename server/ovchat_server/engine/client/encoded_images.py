"""The files of encoded images: those that requests use, and the last ones, for requests to come."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ovchat_server.domain.errors import OverloadedError
from ovchat_server.engine.contract.image_encoder import EncodedImage

if TYPE_CHECKING:
    from ovchat_server.engine.contract.image_messages import ImageOutput

# Of files that are kept though no request uses them.
MAX_KEPT_BYTES = 256 << 20
# Of all files.
MAX_BYTES = 1 << 30


class EncodedImages:
    """Keeps encoded images by their hashes; a file goes when neither it nor a request needs it."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES, max_bytes: int = MAX_BYTES) -> None:
        """Keep no image yet."""
        self._max_kept_bytes, self._max_bytes = max_kept_bytes, max_bytes
        # All that are there.
        self._images: WeakValueDictionary[int, EncodedImage] = WeakValueDictionary()
        self._bytes = 0
        # Those that stay though no request uses them; those used last are at the end.
        self._kept: OrderedDict[int, EncodedImage] = OrderedDict()
        self._kept_bytes = 0

    def get(self, key: int) -> EncodedImage | None:
        """Return an image, if it is there."""
        image = self._images.get(key)
        # Folders for temporary files are cleaned on some systems.
        if image and Path(image.rows).exists():
            self._keep(image)
            return image
        return None

    def check_room(self) -> None:
        """Make room for one more.

        Raises:
            OverloadedError: Running requests use as many as there may be.
        """
        while self._bytes >= self._max_bytes and self._kept:
            self._drop(next(iter(self._kept)))
        if self._bytes >= self._max_bytes:
            message = "Too many images are in use at the moment. Try again shortly."
            raise OverloadedError(message, retry_after=1)

    def add(self, key: int, output: ImageOutput) -> EncodedImage:
        """Keep an image, and others only as far as there is room."""
        image = EncodedImage(key, output.length, output.positions, output.rows, output.size)
        # Once nobody holds the image; at the latest when the server ends.
        weakref.finalize(image, self._delete, Path(image.rows), image.size)
        self._images[key] = image
        self._bytes += image.size
        self._keep(image)
        return image

    def clear(self) -> None:
        """Keep no image any more."""
        self._kept.clear()
        self._kept_bytes = 0

    def _keep(self, image: EncodedImage) -> None:
        self._drop(image.hash)
        self._kept[image.hash] = image
        self._kept_bytes += image.size
        while self._kept_bytes > self._max_kept_bytes and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: int) -> None:
        if image := self._kept.pop(key, None):
            self._kept_bytes -= image.size

    def _delete(self, file: Path, size: int) -> None:
        self._bytes -= size
        file.unlink(missing_ok=True)
