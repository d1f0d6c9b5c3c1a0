"""What OpenVINO says when a device cannot run a model, and what an operator can do about it."""

from __future__ import annotations

import contextlib
import difflib
import re

import openvino as ov

# OpenVINO has no types of errors, so its texts have to do.
_DEVICE = re.compile(
    r"name is not registered|as device id|Cannot load library \"libopenvino_intel_\w+\.so\""
)
_DRIVEN = ("GPU", "NPU")
_PROPERTY = re.compile(r"(?:Unsupported property|property key) (?P<name>\w+)")
# Of memory and of what drivers hold there may be enough in a moment.
_PASSING = re.compile(r"memory|alloc|resource", re.IGNORECASE)


def may_pass(text: str) -> bool:
    """Return whether an error may not come again at another attempt."""
    return bool(_PASSING.search(text))


def device_advice(text: str, device: str) -> str:
    """Return what to do about an error, with a colon; "" if it is not of device or properties.

    Args:
        text: What OpenVINO says.
        device: The device that was asked for.
    """
    if _DEVICE.search(text):
        return _other_device(device)
    if found := _PROPERTY.search(text):
        name = found["name"]
        return f"correct the property {name}{_similar(name, device)}: "
    return ""


def _other_device(device: str) -> str:
    devices = ov.Core().available_devices
    advice = f"set device to one that is here ({', '.join(devices)})"
    if device.partition(".")[0] in _DRIVEN:
        return f"{advice}, or install the driver of {device!r}: "
    return f"{advice}, not {device!r}: "


def _similar(name: str, device: str) -> str:
    known: list[str] = []
    with contextlib.suppress(RuntimeError):
        known = [*ov.Core().get_property(device, "SUPPORTED_PROPERTIES")]
    close = difflib.get_close_matches(name, [other for other in known if other != name], 1)
    return f" (did you mean {close[0]}?)" if close and name not in known else ""
