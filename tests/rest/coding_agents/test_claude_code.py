"""Claude Code, with all of its tools, an MCP server and the settings of docs/clients.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.rest.agents.weather import IN_PARIS, PARIS, sentences
from tests.rest.coding_agents.test_codex import logged, make_model
from tests.rest.conftest import running_stack
from tests.rest.programs import NODE_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

CLAUDE = NODE_PROGRAMS / "node_modules/.bin/claude"
TOOL = "mcp__weather__get_weather"
SERVERS = {
    "mcpServers": {
        "weather": {
            "command": sys.executable,
            "args": ["-m", "tests.rest.coding_agents.weather_server"],
            "env": {"PYTHONPATH": str(ROOT)},
        }
    }
}
# Its requests to models of Anthropic's differ from those to a model that it does not know.
ALIAS = "claude-opus-5"


def documented(url: str) -> str:
    """The settings that docs/clients.md has, for a server at a URL."""
    page = (ROOT / "docs/clients.md").read_text()
    [settings] = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:8000" in settings
    return str(settings.replace("http://127.0.0.1:8000", url))


def events_of(home: Path, *options: str) -> list[dict[str, Any]]:
    """What it prints when it is asked for the weather."""
    own = ("ANTHROPIC", "CLAUDE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    output = ("--print", "--verbose", "--output-format", "stream-json")
    ended = subprocess.run(
        [CLAUDE, *output, "--mcp-config", home / "mcp.json", "--allowedTools", TOOL, *options],
        input=PARIS,
        capture_output=True,
        check=False,
        text=True,
        cwd=home,
        env={**environment, "HOME": str(home)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def contents(events: Sequence[dict[str, Any]], role: str) -> list[dict[str, Any]]:
    """The blocks of all messages of a role."""
    return [
        block for event in events if event["type"] == role for block in event["message"]["content"]
    ]


def test_it_calls_a_tool_and_answers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / "mcp.json").write_text(json.dumps(SERVERS))
    tables = f'\n[aliases]\n{ALIAS} = "demo"\n'
    with running_stack(tmp_path, make_model(tmp_path), tables=tables) as stack:
        (home / ".claude/settings.json").write_text(documented(stack.url))
        answered = {"demo": events_of(home), ALIAS: events_of(home, "--model", ALIAS)}

    for model, events in answered.items():
        call, said = contents(events, "assistant")
        [result] = contents(events, "user")
        assert (call["type"], call["name"], call["input"]) == ("tool_use", TOOL, {"city": "Paris"})
        assert result["tool_use_id"] == call["id"]
        assert not result.get("is_error")
        assert said["text"] == sentences(IN_PARIS)
        assert events[-1]["result"] == said["text"]
        assert events[-1]["modelUsage"].keys() == {model}

    # It tries again what is refused.
    assert logged(stack.log) == ["POST /v1/messages"] * 4
