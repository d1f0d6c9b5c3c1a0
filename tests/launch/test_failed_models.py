"""`ovchat up` where a model cannot be loaded: the others are served, and that is said."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from tests.launch.stack import running, started

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = "openvino_model.bin"


def broken(directory: Path) -> Path:
    """A model's folder whose weights are not what they were."""
    folder = directory / "broken"
    shutil.copytree(ROOT / "models/successor", folder)
    (folder / WEIGHTS).write_bytes(b"too short")
    return folder


async def test_the_banner_asks_a_model_that_is_served(tmp_path: Path) -> None:
    options = ("--model", f"successor={broken(tmp_path)}", "--model", f"demo={ROOT}/models/demo")
    async with running(tmp_path, *options, "--log-format=text") as stack:
        told = stack.log.read_text()
        assert '"model": "demo"' in stack.printed
    [line] = re.findall("(?m)^.* is served; .*$", told)
    assert "demo is served; successor cannot be loaded, for the reason above: it is tried" in line
    assert told.index("successor: cannot be loaded: ") < told.index(line)
    assert "=" not in line


async def test_the_banner_waits_for_the_first_model_that_is_served(tmp_path: Path) -> None:
    folder = broken(tmp_path)
    async with started(tmp_path, "--replicas=2", folder=folder) as stack:
        await stack.says("no model is served; successor cannot be loaded")
        assert not stack.printed
        shutil.copy(ROOT / "models/successor" / WEIGHTS, folder)
        await stack.banner.wait()
        await stack.answers()
        told = [json.loads(line) for line in stack.log.read_text().splitlines()]
    assert len([entry for entry in told if "no model is served" in entry["message"]]) == 1
    loading = [entry for entry in told if entry["message"] == "successor: loading"]
    assert {entry["server"] for entry in loading} == {1, 2}
