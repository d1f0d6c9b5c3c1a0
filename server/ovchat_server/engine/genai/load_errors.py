"""Why OpenVINO cannot load a model: what stays as it is, and what an operator can do about it."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import openvino as ov
import openvino_genai as genai

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec

GIB = 1 << 30
# OpenVINO has no types of errors, so its texts have to do.
_CACHE_SIZE = re.compile("than available memory|more memory than available")
_WRONG_PATH = (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)
_DEVICE = re.compile(
    r"name is not registered|as device id|Cannot load library \"libopenvino_intel_\w+\.so\""
)
_DRIVEN = ("GPU", "NPU")
_PROPERTY = re.compile(r"(?:Unsupported property|property key) (?P<name>\w+)")
_CACHE_TYPE = re.compile(r"expect kvcache type (?P<computed>\w+)")
# Of memory and of what drivers hold there may be enough in a moment.
_PASSING = re.compile(r"memory|alloc|resource", re.IGNORECASE)


def lasting(
    error: Exception, spec: GenerationSpec, block_bytes: Callable[[], int]
) -> ModelLoadError | None:
    """Return what to tell of an error for whose reason no attempt would do; None: it may pass.

    Args:
        error: What was raised when the model was loaded.
        spec: The model.
        block_bytes: Measures the size of a KV block, which takes as long as loading the model.
    """
    text = error_text(error)
    if _CACHE_SIZE.search(text):
        return _too_large(spec.options, block_bytes)
    if isinstance(error, _WRONG_PATH):
        return ModelLoadError(f"{_other_folder(spec.options)}{text}")
    if not isinstance(error, RuntimeError) or _PASSING.search(text):
        return None
    return ModelLoadError(f"{_advice(text, spec)}{text}")


def _advice(text: str, spec: GenerationSpec) -> str:
    """Return what to do about what OpenVINO says, with a colon; "" where that is not known."""
    if _DEVICE.search(text):
        return _other_device(spec.options.device)
    if found := _PROPERTY.search(text):
        name = found["name"]
        return f"correct the property {name}{_similar(name, spec.options)}: "
    if found := _CACHE_TYPE.search(text):
        computed = found["computed"]
        return f"set kv_cache_precision to u4, u8, f16 or {computed}, as the model is computed: "
    if broken := _broken(Path(spec.path)):
        return f"export or copy {broken} anew: "
    if spec.draft_model and (broken := _broken(Path(spec.draft_model))):
        return f"export or copy {broken} of draft_model anew: "
    return ""


def _too_large(options: GenerationOptions, block_bytes: Callable[[], int]) -> ModelLoadError | None:
    total, free = _memory()
    room = f"this machine has {total / GIB:.1f} GiB of memory, {free / GIB:.1f} of them free"
    if options.kv_cache_gb is not None:
        size = options.kv_cache_gb * GIB
        advice = f"lower kv_cache_gb from {options.kv_cache_gb}"
    else:
        block = block_bytes()
        size = (options.kv_blocks or 0) * block
        advice = f"lower kv_blocks from {options.kv_blocks}, which take {size / GIB:.1f} GiB"
    # Otherwise others hold it, who may be going: this engine's predecessor, for example.
    return ModelLoadError(f"{advice}: {room}") if size > total else None


def _memory() -> tuple[int, int]:
    """Return the bytes of this machine's memory, and how many of them are free."""
    page = os.sysconf("SC_PAGE_SIZE")
    found = re.search(r"MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    free = int(found[1]) << 10 if found else os.sysconf("SC_AVPHYS_PAGES") * page
    return os.sysconf("SC_PHYS_PAGES") * page, free


def _other_device(device: str) -> str:
    devices = ov.Core().available_devices
    advice = f"set device to one that is here ({', '.join(devices)})"
    if device.partition(".")[0] in _DRIVEN:
        return f"{advice}, or install the driver of {device!r}: "
    return f"{advice}, not {device!r}: "


def _other_folder(options: GenerationOptions) -> str:
    cache = options.properties.get("CACHE_DIR")
    return "set CACHE_DIR to a folder that can be written to: " if cache else ""


def _similar(name: str, options: GenerationOptions) -> str:
    known: list[str] = []
    with contextlib.suppress(RuntimeError):
        known = [*ov.Core().get_property(options.device, "SUPPORTED_PROPERTIES")]
    close = difflib.get_close_matches(name, [other for other in known if other != name], 1)
    return f" (did you mean {close[0]}?)" if close and name not in known else ""


def _broken(folder: Path) -> str:
    """Return which files of a model cannot be read; "" if all can be."""
    reads: dict[str, Callable[[], object]] = {
        "openvino_tokenizer": lambda: genai.Tokenizer(folder),
        # Vision models are several graphs.
        **{
            graph.stem: partial(ov.Core().read_model, graph)
            for graph in sorted(folder.glob("openvino*model.xml"))
        },
    }
    for name, read in reads.items():
        try:
            read()
        except RuntimeError:
            return f"{name}.xml and .bin"
    return ""
