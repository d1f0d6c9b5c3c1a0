"""Clients in environments of their own, which the Makefile installs the first time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.rest.conftest import Stack

HERE = Path(__file__).resolve().parent
# The Node that setup installed.
NODE = Path(sysconfig.get_path("scripts")) / "node"


def installed(client: str, environment: str) -> Path:
    """Install a client, a folder from here on, and return the folder of what it needs."""
    folder = (HERE / client / environment).resolve()
    stamp = (folder / ".installed").relative_to(ROOT)
    subprocess.run(
        ["make", "--silent", "--directory", ROOT, f"PYTHON={sys.executable}", stamp], check=True
    )
    return folder


def python_of(client: str) -> Path:
    """Install a client, a folder from here on, and return its Python."""
    return installed(client, ".venv") / "bin/python"


def printed_by_node(script: str, url: str, asked: str | None = None) -> Any:
    """Run a script of the folder `node` on a URL, and return the JSON that it prints."""
    installed("node", "node_modules")
    result = subprocess.run(
        [NODE, HERE / "node" / script, url],
        input=asked,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def what_it_saw(client: str, stack: Stack) -> Any:
    """Run a client's ask.py, and return the JSON that it prints."""
    server = {"OPENAI_BASE_URL": f"{stack.url}/v3", "OPENAI_API_KEY": "unused"}
    result = subprocess.run(
        # Isolated from what PYTHONPATH has for us.
        [python_of(client), "-I", HERE / client / "ask.py"],
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
        env={**os.environ, **server},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
