"""Which versions are installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of this server and of what it runs on; "" of what is not installed."""

    ovchat: str
    openvino: str
    openvino_genai: str


def installed_versions() -> Versions:
    """What the packages' metadata say: the libraries themselves are for engines to load."""
    return Versions(
        ovchat=_version("ovchat"),
        openvino=_version("openvino"),
        openvino_genai=_version("openvino-genai"),
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
