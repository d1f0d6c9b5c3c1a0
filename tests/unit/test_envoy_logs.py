"""What Envoy logs, by the servers' level and format."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from ovchat_server.launch.envoy_config import (
    Address,
    Bounds,
    EnvoyFiles,
    Listening,
    envoy_config,
    locate_envoy,
)
from ovchat_server.launch.envoy_logs import EnvoyLogs


@pytest.mark.parametrize(
    ("level", "envoys"),
    [("debug", "info"), ("info", "warning"), ("warning", "warning"), ("error", "error")],
)
def test_envoys_own_log_follows_the_level(level: str, envoys: str) -> None:
    options = EnvoyLogs(level=level).process_options
    assert options[:2] == ("--log-level", envoys)


@pytest.mark.parametrize(
    "logs", [EnvoyLogs(), EnvoyLogs("text"), EnvoyLogs("text", colours=True)], ids=str
)
def test_envoys_own_log_has_the_same_form(logs: EnvoyLogs) -> None:
    command = (str(locate_envoy(None)), "--mode", "validate", "--config-yaml", "oh: [dear")
    ended = subprocess.run(
        [*command, *logs.process_options], capture_output=True, text=True, check=False
    )
    for line in ended.stderr.splitlines():
        if logs.colours:
            assert re.match(r"\x1b\[90m[\d:]{8}\x1b\[0m Envoy: ", line)
        elif logs.log_format == "text":
            assert line[8:].startswith(" Envoy: ")
        else:
            assert json.loads(line).keys() == {"timestamp", "level", "logger", "message"}
    assert "yaml-cpp" in ended.stderr


def test_errors_alone_leave_no_access_log() -> None:
    config = envoy_config(
        EnvoyFiles.locate(),
        Listening("127.0.0.1", [8000], Address("127.0.0.1", 9901)),
        [Address("127.0.0.1", 9000)],
        Bounds(1 << 20),
        logs=EnvoyLogs(level="error"),
    )
    assert "access_log" not in json.dumps(config)
