"""A model that the server's user may not read, as happens in containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# What lets root read everything.
POWERS = "-dac_override,-dac_read_search"
WITHOUT = ["setpriv", "--bounding-set", POWERS, "--inh-caps", POWERS]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("serve", "openvino_model.xml"),
        ("up", "openvino_model.bin"),
        ("serve", "config.json"),
        ("up", "."),
        ("serve", "x.gguf"),
    ],
)
def test_what_cannot_be_read_is_named_before_anything_starts(
    tmp_path: Path, command: str, name: str
) -> None:
    root = os.geteuid() == 0
    if root and not shutil.which("setpriv"):
        pytest.skip("root reads everything")
    folder = tmp_path / "demo"
    shutil.copytree(ROOT / "models/demo", folder)
    unreadable = folder / name
    if name == "x.gguf":
        unreadable.touch()
    unreadable.chmod(0)
    path = unreadable if name == "x.gguf" else folder

    program = [sys.executable, "-m", "ovchat_server", command, "--model", f"demo={path}"]
    ended = subprocess.run(
        [*WITHOUT, *program] if root else program, capture_output=True, text=True, check=False
    )
    unreadable.chmod(0o700)

    assert (ended.returncode, ended.stderr) == (
        1,
        f"Error: the model 'demo': {unreadable} cannot be read: Permission denied\n",
    )
