"""A terminal, for programs that look whether they have one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import termios
from typing import Any


class Screen:
    """What is written to a terminal, until nobody has it open any more."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        self.text = ""
        self.ended = asyncio.Event()
        self._written = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        data = b""
        # The error says that it is nobody's.
        with contextlib.suppress(OSError):
            data = os.read(self._master, 1 << 16)
        if not data:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self.ended.set()
        self.text += data.decode()
        self._written.set()

    async def shows(self, pattern: str) -> None:
        while not re.search(pattern, self.text):
            self._written.clear()
            await self._written.wait()

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def modes(self) -> list[Any]:
        """How the terminal treats what is typed and written."""
        return termios.tcgetattr(self._master)
