"""Which pages in browsers may call and read what they get: those of allowed origins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ovchat_server.launch.envoy_config import Config

# What stands for the origins in cors.yaml.
_EXAMPLE: Final = "https://app.example"
ANY: Final = "*"


def allow_origins(manager: Config, file: Path, origins: Sequence[str]) -> None:
    """Add CORS to the connection manager of envoy.yaml, which has none.

    Args:
        manager: The connection manager.
        file: cors.yaml.
        origins: Those that may call; ANY: all.
    """
    pattern = ".*" if ANY in origins else "|".join(map(re.escape, origins))
    text = file.read_text(encoding="utf-8").replace(_EXAMPLE, pattern.replace("\\", "\\\\"))
    cors: Config = yaml.safe_load(text)
    for host in manager["route_config"]["virtual_hosts"]:
        host["routes"].insert(0, cors["preflight"])
        host.update(cors["virtual_host"])
