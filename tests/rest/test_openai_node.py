"""OpenAI's SDK for Node must not notice the difference."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from tests.successor import successor_text

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

HERE = Path(__file__).resolve().parent / "node"
NODE = Path(sysconfig.get_path("scripts")) / "node"


def test_answers_streams_and_raises(stack: Stack) -> None:
    result = subprocess.run(
        [NODE, HERE / "chat.mjs", f"{stack.url}/v3", "successor", "a", "40"],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )

    assert result.returncode == 0, result.stderr
    text = successor_text("a", 40)
    assert json.loads(result.stdout) == {
        "whole": text,
        "finish": "length",
        "streamed": text,
        "usage": {"prompt_tokens": 1, "completion_tokens": 40, "total_tokens": 41},
        "accumulated": text,
        "error": {
            "name": "NotFoundError",
            "status": 404,
            "code": "model_not_found",
            "param": "model",
        },
        "models": ["demo", "successor"],
    }
