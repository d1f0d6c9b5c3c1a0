"""Codex CLI, with all of its tools, an MCP server and the configuration of docs/clients.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, model_settings
from tests.rest.agents.weather import IN_PARIS, PARIS, sentences
from tests.rest.conftest import running_stack
from tests.rest.programs import NODE, NODE_PROGRAMS

if TYPE_CHECKING:
    from ovchat_server.settings import ModelSettings

pytestmark = pytest.mark.slow

CODEX = NODE_PROGRAMS / "node_modules/.bin/codex"
TEMPLATE = Path(__file__).parent / "template.jinja"
WEATHER_SERVER = f"""
[mcp_servers.weather]
command = "{sys.executable}"
args = ["-m", "tests.rest.coding_agents.weather_server"]
cwd = "{ROOT}"
required = true
"""


def make_model(directory: Path) -> ModelSettings:
    """The demo model, but that it sees little of Codex's prompts and is greedy.

    Codex says no temperature.
    """
    path = directory / "demo"
    shutil.copytree(ROOT / "models/demo", path)
    template = path / "chat_template.jinja"
    template.write_text(TEMPLATE.read_text() + template.read_text())
    defaults = path / "generation_config.json"
    defaults.write_text(json.dumps({**json.loads(defaults.read_text()), "temperature": 0}))
    return model_settings("demo", path=path)


def documented(url: str) -> str:
    """The configuration that docs/clients.md has, for a server at a URL."""
    page = (ROOT / "docs/clients.md").read_text()
    [config] = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:8000" in config
    return config.replace("http://127.0.0.1:8000", url)


def test_it_lists_the_model_calls_a_tool_and_answers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running_stack(tmp_path, make_model(tmp_path)) as stack:
        (home / "config.toml").write_text(documented(stack.url) + WEATHER_SERVER)
        ended = subprocess.run(
            [NODE, CODEX, "exec", "--json", "--skip-git-repo-check", PARIS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
            cwd=home,
            env={**os.environ, "CODEX_HOME": str(home), "OPENAI_API_KEY": "unused"},
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr

    events = [json.loads(line) for line in ended.stdout.splitlines()]
    # It would say here, as an item, that it does not know the model.
    call, said = (event["item"] for event in events if event["type"] == "item.completed")
    assert (call["type"], call["status"]) == ("mcp_tool_call", "completed")
    assert (call["server"], call["tool"], call["arguments"]) == (
        "weather",
        "get_weather",
        {"city": "Paris"},
    )
    assert (said["type"], said["text"]) == ("agent_message", sentences(IN_PARIS))

    assert "GET /v1/models" in logged(stack.log)
    assert logged(stack.log).count("POST /v1/responses") == 2


def logged(log: Path) -> list[str]:
    """The requests in the log of a server that has ended."""
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")
    ]
    return [f"{line['method']} {line['path']}" for line in lines if "method" in line]
