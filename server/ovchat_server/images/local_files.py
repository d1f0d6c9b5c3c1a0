"""Images in files of the server."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from urllib.parse import unquote

from ovchat_server.domain.content import ImageError
from ovchat_server.images.file_size import too_large

# RFC 8089: of this machine.
FILE_URL = re.compile(r"file:(//(localhost)?(?=/)|(?=/[^/]))", re.IGNORECASE)
# Never waits for a writer of a pipe, nor follows a link that came after the check.
FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


class LocalFiles:
    """The files in one folder, if any."""

    def __init__(self, folder: Path | None, max_bytes: int) -> None:
        """Take the folder.

        Args:
            folder: Where files may be; None: nowhere.
            max_bytes: Largest file that is read.
        """
        self._folder = folder and Path(os.path.abspath(folder))  # noqa: PTH100  without `..`
        self._max_bytes = max_bytes

    def read(self, url: str) -> bytes:
        """Return what is in a file; this may take a while.

        Args:
            url: A `file:` URL or, as OVMS takes it, an absolute path.

        Raises:
            ImageError: It may not be read, or cannot be.
        """
        if self._folder is None:
            raise ImageError(
                "is a local file, and the operator of this server allows none "
                "(--allowed-local-media-path); send the image in a data: URL",
                "invalid_image_url",
            )
        path = url if url.startswith("/") else unquote(FILE_URL.sub("", url))
        try:
            return self._content(self._allowed(self._folder, path))
        except (OSError, ValueError) as error:
            raise ImageError("is not a file that can be read", "image_file_not_found") from error

    def _allowed(self, folder: Path, path: str) -> Path:
        """Return where a file is, which is inside of the folder."""
        # First by its name alone, or callers could ask what there is outside of the folder.
        named = Path(os.path.normpath(path))
        if named.is_relative_to(folder):
            real = Path(os.path.realpath(named))
            if real.is_relative_to(os.path.realpath(folder)):
                return real
        raise ImageError(
            "is a file outside of the folder that the operator of this server allows "
            "(--allowed-local-media-path)",
            "invalid_image_url",
        )

    def _content(self, path: Path) -> bytes:
        with open(os.open(path, FLAGS), "rb") as file:  # noqa: PTH123  no Path has flags
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError("no regular file")
            content = file.read(self._max_bytes + 1)
        if len(content) > self._max_bytes:
            raise too_large(self._max_bytes)
        return content
