"""Reading the API keys of callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.config_file import SettingError, read_text
from ovchat_server.domain.identity import ApiKey

if TYPE_CHECKING:
    from pathlib import Path


def read_api_keys(path: Path | None) -> tuple[ApiKey, ...]:
    """Return the keys of a file: one per line, without comments and empty lines.

    Args:
        path: The file; None: there are no keys.

    Raises:
        SettingError: It cannot be read, or holds no keys.
    """
    if path is None:
        return ()
    lines = [line.strip() for line in read_text(path).splitlines()]
    for number, line in enumerate(lines, start=1):
        # Nobody could send it: what follows is most likely a comment. Keys are never shown.
        if not line.startswith("#") and len(line.split()) > 1:
            raise SettingError(f"--api-key-file {path}:{number}: a key has no spaces")
    keys = tuple(ApiKey.unnamed(line) for line in lines if line and not line.startswith("#"))
    if not keys:
        # Or a file that was emptied by mistake would open the server to everybody.
        raise SettingError(f"--api-key-file {path} holds no key")
    return keys
