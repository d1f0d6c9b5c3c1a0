"""Why OpenVINO cannot load a model: what stays as it is, and what an operator can do about it."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import openvino as ov
import openvino_genai as genai

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.device_errors import device_advice, may_pass
from ovchat_server.engine.process.error_text import error_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.generation_spec import GenerationOptions, GenerationSpec

GIB = 1 << 30
# OpenVINO has no types of errors, so its texts have to do.
_CACHE_SIZE = re.compile("than available memory|more memory than available")
_WRONG_PATH = (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)
_CACHE_TYPE = re.compile(r"expect kvcache type (?P<computed>\w+)")


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
    if not isinstance(error, RuntimeError) or may_pass(text):
        return None
    return ModelLoadError(f"{_advice(text, spec)}{text}")


def _advice(text: str, spec: GenerationSpec) -> str:
    """Return what to do about what OpenVINO says, with a colon; "" where that is not known."""
    if advice := device_advice(text, spec.options.device):
        return advice
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


def _other_folder(options: GenerationOptions) -> str:
    cache = options.properties.get("CACHE_DIR")
    return "set CACHE_DIR to a folder that can be written to: " if cache else ""


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
