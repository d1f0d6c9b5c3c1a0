"""Starting a process of ours, with a socket to speak to it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


async def start_child(
    module: str, *, environment: Mapping[str, str] | None = None, output: int
) -> tuple[asyncio.subprocess.Process, socket.socket]:
    """Run a module whose first argument is the number of its socket (engine.process.channel).

    Args:
        module: Its name.
        environment: Variables besides those of this process.
        output: Where its standard output and error go, such as asyncio.subprocess.PIPE.

    Returns:
        The process, and our end of the socket, which does not block.

    Raises:
        OSError: It cannot be started.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                pass_fds=(theirs.fileno(),),
            )
    except BaseException:
        ours.close()
        raise
    ours.setblocking(False)  # noqa: FBT003  the standard library's signature
    return process, ours
