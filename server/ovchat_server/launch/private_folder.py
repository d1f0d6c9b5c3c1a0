"""A folder that only this user can enter: sockets in it are nobody else's."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ovchat_server.launch.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the kernel takes as the path of a socket, less the name of one in the folder.
_LONGEST: Final = 107 - len("/server-32")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make the folder, and remove it with all that is in it at the end.

    Raises:
        LaunchError: It cannot be made, or its path is too long for sockets.
    """
    where = tempfile.gettempdir()
    try:
        made = tempfile.TemporaryDirectory(prefix="ovchat-", ignore_cleanup_errors=True)
    except OSError as error:
        raise LaunchError(f"{where} takes no folder for sockets: {error.strerror}") from error
    with made as path:
        if len(path.encode()) > _LONGEST:
            raise LaunchError(f"{where} is too long for sockets: set TMPDIR to a shorter path")
        yield Path(path)
