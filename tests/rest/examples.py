"""Examples in pages, which run as they stand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ovchat_server.settings import ModelSettings

DEFAULTS = "generation_config.json"
# Python's run one after the other in one process: importing OpenAI's SDK takes seconds.
RUN_ALL = """
import contextlib, io, json, sys, traceback

ended = []
for code in json.load(sys.stdin):
    output, error = io.StringIO(), ""
    with contextlib.redirect_stdout(output):
        try:
            exec(code, {"__name__": "__main__"})
        except Exception:
            error = traceback.format_exc()
    ended.append([output.getvalue(), error])
json.dump(ended, sys.stdout)
"""


def likeliest(model: ModelSettings, folder: Path) -> ModelSettings:
    """A model whose own default is the likeliest token: examples leave it to chance."""
    folder.mkdir()
    for file in model.path.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    defaults = json.loads((model.path / DEFAULTS).read_text())
    (folder / DEFAULTS).unlink()
    (folder / DEFAULTS).write_text(json.dumps({**defaults, "top_k": 1}))
    return msgspec.structs.replace(model, path=folder)


def run(*command: str | Path, text: str = "") -> str:
    """What a command prints."""
    result = subprocess.run(
        command,
        input=text,
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_commands(code: str) -> str:
    """What commands of a shell print, those in the background, too."""
    return run("bash", "-euo", "pipefail", "-c", code)


def run_python(codes: Sequence[str]) -> list[tuple[str, str]]:
    """What each program prints, and its traceback."""
    ended = json.loads(run(sys.executable, "-c", RUN_ALL, text=json.dumps(codes)))
    return [(output, error) for output, error in ended]
