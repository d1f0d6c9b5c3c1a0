"""The examples of the README and of docs/grpc.md run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

SCRIPTS = Path(sysconfig.get_path("scripts"))
TEXT = "\n".join((ROOT / name).read_text() for name in ("README.md", "docs/grpc.md"))
BLOCKS = re.findall(r"^```(bash|python|javascript)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
# What each says, in that order.
EXPECTED = [
    "Paris",
    "data: [DONE]",
    "42",
    "1, 2, 3",
    "I",
    "2 ",
    "For Rome, the temperature is 21",
    "1, 2, 3",
    "FINISH_REASON_STOP",
    "MODEL_STATE_READY",
    '{"prompt":"Hello there"}',
    '"openvino_genai":',
    '"totalKvBlocks": ',
    "0 0 of ",
]


# What is written for Node needs the SDK that only `make test-all` installs; of those that take
# seconds to import OpenAI's the first is enough for most runs.
FIRST_OF_ITS_KIND = [
    language != "javascript" and (language != "python" or "openai" not in code or number == 2)
    for number, (language, code) in enumerate(BLOCKS)
]
NUMBERS = [
    pytest.param(number, marks=() if first else pytest.mark.slow)
    for number, first in enumerate(FIRST_OF_ITS_KIND)
]


def test_every_example_has_an_expectation() -> None:
    assert len(BLOCKS) == len(EXPECTED)


@pytest.mark.parametrize("number", NUMBERS)
def test_an_example_works_as_typed(stack: Stack, tmp_path: Path, number: int) -> None:
    language, code = BLOCKS[number]
    code = code.replace(":8000", f":{stack.rest_port}").replace(":9000", f":{stack.grpc_port}")
    code = code.replace(".venv/bin", str(SCRIPTS))
    # A model that takes longer to load; tests/launch/test_gguf.py asks it the same.
    code = code.replace('"smollm2"', '"demo"')
    node_modules = tmp_path / "node_modules"
    node_modules.symlink_to(ROOT / "tests/rest/node/node_modules")
    file = tmp_path / {"bash": "x.sh", "python": "x.py", "javascript": "x.mjs"}[language]
    file.write_text(code)
    command = {
        "bash": ["bash", "-euo", "pipefail"],
        "python": [sys.executable],
        "javascript": [str(SCRIPTS / "node")],
    }[language]

    result = subprocess.run(
        [*command, str(file)],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )

    assert result.returncode == 0, result.stderr
    assert EXPECTED[number] in result.stdout
