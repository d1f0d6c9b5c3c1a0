"""Where the file of an image comes from."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import shortened
from ovchat_server.images import data_urls
from ovchat_server.images.downloads import Downloads, Network
from ovchat_server.images.local_files import FILE_URL, LocalFiles

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from ovchat_server.domain.content import Image

    InThread: TypeAlias = Callable[[Callable[[], bytes]], Awaitable[bytes]]

MAX_BYTES = 20 << 20
NETWORK = Network()


class ImageSources:
    """Reads the files of images: from the request itself, from other hosts, and from a folder."""

    def __init__(
        self,
        allowed_domains: Sequence[str] = (),
        local_path: Path | None = None,
        *,
        in_thread: InThread = asyncio.to_thread,
        max_bytes: int = MAX_BYTES,
        network: Network = NETWORK,
    ) -> None:
        """Take what callers may have read.

        Args:
            allowed_domains: Hosts that images are fetched from over HTTPS, each `host` or
                `host:port`.
            local_path: Folder whose files are read; None: no file is.
            in_thread: Runs what would block the event loop.
            max_bytes: Largest file that is fetched, or read from the folder. Requests have a
                limit of their own.
            network: How hosts are reached.
        """
        self._in_thread = in_thread
        self._files = LocalFiles(local_path, max_bytes)
        self._downloads = Downloads(allowed_domains, max_bytes, network)

    async def read(self, image: Image) -> bytes:
        """Return the file of an image, whatever it is.

        Raises:
            InvalidRequestError: It may not be read, or cannot be; the error names the field.
        """
        try:
            return image.data or await self._at(image.url.strip())
        except ImageError as error:
            raise error.about(image) from error

    async def _at(self, url: str) -> bytes:
        if _begins(url, "data:"):
            return await self._in_thread(partial(data_urls.decode, url))
        if _begins(url, "https:") or _begins(url, "http:"):
            return await self._downloads.fetch(url)
        if url.startswith("/") or FILE_URL.match(url):
            return await self._in_thread(partial(self._files.read, url))
        raise ImageError(
            "must be a data: URL (data:image/png;base64,...), an https: URL, or the path of a file "
            f"on the server (file:///...), not {shortened(url)!r}",
            "invalid_image_url",
        )


def _begins(url: str, scheme: str) -> bool:
    """Say whether a URL has a scheme, in capitals or not; it may be megabytes long."""
    return url[: len(scheme)].lower() == scheme
