"""Clients in environments of their own, which the Makefile installs the first time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

HERE = Path(__file__).resolve().parent


def python_of(client: str) -> Path:
    """Install a client, a folder from here on, and return its Python."""
    environment = HERE / client / ".venv"
    stamp = (environment / ".installed").relative_to(ROOT)
    subprocess.run(
        ["make", "--silent", "--directory", ROOT, f"PYTHON={sys.executable}", stamp], check=True
    )
    return environment / "bin/python"


def what_it_saw(client: str, stack: Stack) -> Any:
    """Run a client's ask.py, and return the JSON that it prints."""
    server = {"OPENAI_BASE_URL": f"{stack.url}/v3", "OPENAI_API_KEY": "unused"}
    result = subprocess.run(
        # Isolated from what PYTHONPATH has for us.
        [python_of(client), "-I", HERE / client / "ask.py"],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **server},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
