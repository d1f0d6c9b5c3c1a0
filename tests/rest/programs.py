"""Clients that are programs of their own: for Node, or in a Python environment of their own."""

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
# The Node that setup installed, and the programs for it.
NODE = Path(sysconfig.get_path("scripts")) / "node"
NODE_PROGRAMS = HERE / "node"


def python_of(client: str) -> Path:
    """Have the Makefile install a client, a folder from here on, and return its Python."""
    environment = HERE / client / ".venv"
    stamp = (environment / ".installed").relative_to(ROOT)
    subprocess.run(
        ["make", "--silent", "--directory", ROOT, f"PYTHON={sys.executable}", stamp], check=True
    )
    return environment / "bin/python"


def what_it_saw(client: str, stack: Stack) -> Any:
    """Run a client's ask.py, and return the JSON that it prints."""
    # Isolated from what PYTHONPATH has for us.
    program = (python_of(client), "-I", HERE / client / "ask.py")
    return _printed(*program, OPENAI_BASE_URL=f"{stack.url}/v3", OPENAI_API_KEY="unused")


def printed_by_node(
    program: str, address: str, asked: str | None = None, **environment: str
) -> Any:
    """Run a program for Node on an address, and return the JSON that it prints.

    Args:
        program: Its name in the folder `node`.
        address: A URL or a target.
        asked: What it reads from standard input.
        environment: Variables of its environment.
    """
    return _printed(NODE, NODE_PROGRAMS / program, address, asked=asked, **environment)


def errors_of_node(unsupported: str) -> list[dict[str, Any]]:
    """What OpenAI's SDK makes of an unknown model, of a wrong temperature and of `unsupported`."""
    wrong = {"name": "BadRequestError", "status": 400, "known": True}
    return [
        {
            "name": "NotFoundError",
            "status": 404,
            "code": "model_not_found",
            "param": "model",
            "known": True,
        },
        {**wrong, "code": "invalid_value", "param": "temperature"},
        {**wrong, "code": "unsupported_parameter", "param": unsupported},
    ]


def _printed(*command: str | Path, asked: str | None = None, **environment: str) -> Any:
    result = subprocess.run(
        command,
        input=asked,
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
