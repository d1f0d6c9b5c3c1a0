"""Making an API key."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from ovchat_server.config_file import SettingError
from ovchat_server.domain.identity import digest
from ovchat_server.keys.key_file import HASHED, NAME, keys_in

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "sk-ovchat-"
RANDOM_BYTES = 32


def new_key(name: str) -> tuple[str, str]:
    """Return a new key, and its line in a file of keys, which has its SHA-256 alone.

    Raises:
        SettingError: The name cannot stand in that file.
    """
    if not NAME.fullmatch(name):
        raise SettingError(
            "NAME must be made of at most 64 letters, digits and . _ - @, "
            f"the first one a letter or a digit, got {name!r}"
        )
    key = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    return key, f"{name} {HASHED}{digest(key).hex()}"


def add_line(path: Path, name: str, line: str) -> None:
    """Add a key's line to a file, which is made for its owner alone if there is none.

    Raises:
        SettingError: The file cannot be read or written, is wrong, or has a key of that name.
    """
    exists = path.exists() and path.stat().st_size > 0
    if exists and any(key.name == name for key in keys_in(path)):
        raise SettingError(f"{path} has a key called {name!r} already")
    try:
        # In a single write: a server that reads it meanwhile sees all of the line, or nothing.
        opened = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        with open(opened, "a", encoding="utf-8") as file:  # noqa: PTH123  its mode is set
            file.write(f"\n{line}\n" if exists and not _ends_a_line(path) else f"{line}\n")
    except OSError as error:
        raise SettingError(f"{path} cannot be written: {error.strerror}") from error


def _ends_a_line(path: Path) -> bool:
    return path.read_bytes().endswith(b"\n")
