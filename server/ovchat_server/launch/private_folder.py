"""A folder that only this user can enter: sockets in it are nobody else's."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ovchat_server.launch.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "ovchat-up-"
# What the kernel takes as the path of a socket, less the name of one in the folder.
_LONGEST: Final = 107 - len("/server-32")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make the folder, and remove it with all that is in it at the end.

    Those that others of this user have left, who were killed, are removed as well.

    Raises:
        LaunchError: It cannot be made, or its path is too long for sockets.
    """
    where = Path("/tmp")  # noqa: S108  for the message, if there is none
    try:
        where = Path(tempfile.gettempdir())
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise LaunchError(f"{where} takes no folder for sockets: {error.strerror}") from error
    try:
        if len(os.fsencode(folder)) > _LONGEST:
            raise LaunchError(f"{where} is too long for sockets: set TMPDIR to a shorter path")
        for left in where.glob(f"{PREFIX}*"):
            # An empty one is being made.
            with contextlib.suppress(OSError), _locked(left):
                if left.stat().st_uid == os.getuid() and any(left.iterdir()):
                    shutil.rmtree(left)
        # What cleans temporary folders leaves locked ones alone, however old they are.
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, which ends with the process at the latest.

    Raises:
        OSError: Somebody else holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
