"""The versions that are installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of this server and of its libraries; "" for one that is not installed."""

    ovchat: str
    openvino: str
    openvino_genai: str


def installed_versions() -> Versions:
    """Return what the metadata of the packages say, without loading the libraries."""
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
