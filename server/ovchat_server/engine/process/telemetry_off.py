"""OpenVINO's Python package reports each import to its maker, over the network."""

from __future__ import annotations

import sys


def turn_off_telemetry() -> None:
    """Keep OpenVINO from reporting; to be called before it is imported.

    Who runs a service of their own wants no calls to others from it, nor OpenVINO's warning where
    its client's id cannot be written. It has no setting for that without a file in a home folder;
    where the library is missing, it reports nothing (openvino.tools.ovc.telemetry_stub).
    """
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
