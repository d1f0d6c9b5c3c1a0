"""OpenVINO reports nothing to anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ovchat_server

PACKAGE = Path(ovchat_server.__file__).parent
# The processes that import it: those of engines, of grammars, and of conversions.
PROCESSES = ("engine/process/main.py", "engine/genai/grammar_process.py", "cli.py")
SCRIPT = """
from ovchat_server.engine.process.telemetry_off import turn_off_telemetry
turn_off_telemetry()
import openvino
from openvino.tools.ovc import telemetry_utils
print(telemetry_utils.tm.__name__)
"""


def test_openvino_takes_its_stub() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "openvino.tools.ovc.telemetry_stub"


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_turns_it_off(process: str) -> None:
    assert "    turn_off_telemetry()\n" in (PACKAGE / process).read_text(encoding="utf-8")
