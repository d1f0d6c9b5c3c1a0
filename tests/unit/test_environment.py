"""Variables that are no options: warned of where they look like one, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ovchat_server import cli
from ovchat_server.environment import unknown_variables
from ovchat_server.options import SETTINGS
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.settings import Settings

MODEL = ("--model", f"demo={ROOT / 'models/demo'}")
SAYS = "OVCHAT_RESTPORT is no option; did you mean OVCHAT_REST_PORT?"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("OVCHAT_LOGLEVEL", "; did you mean OVCHAT_LOG_LEVEL?"),
        ("OVCHAT_MODELS", "; did you mean OVCHAT_MODEL?"),
        (
            "OVCHAT_KV_BLOCKS",
            ": kv_blocks belongs to a model: set it in its [[models]] table of --config",
        ),
        (
            "OVCHAT_MAX_TOOLS",
            ": max_tools is a limit of requests: set it in the [limits] table of --config",
        ),
    ],
)
def test_what_looks_like_an_option_is_said_not_to_be_one(name: str, says: str) -> None:
    assert [*unknown_variables(["PATH", name])] == [f"{name} is no option{says}"]


def test_options_and_what_others_set_are_not_warned_of() -> None:
    others = [
        "REST_PORT",
        # What Kubernetes makes of Services called "ovchat" and "ovchat-rest".
        "OVCHAT_PORT",
        "OVCHAT_PORT_9000_TCP",
        "OVCHAT_PORT_9000_TCP_ADDR",
        "OVCHAT_SERVICE_HOST",
        "OVCHAT_SERVICE_PORT",
        "OVCHAT_REST_SERVICE_HOST",
        "OVCHAT_REST_SERVICE_PORT",
        "OVCHAT_REST_PORT_8000_TCP",
        "OVCHAT_API_KEY",
        "OVCHAT_TEST_EFFORT",
    ]
    assert [*unknown_variables([*others, *(str(item.envvar) for item in SETTINGS)])] == []


@pytest.mark.parametrize(
    ("arguments", "times"),
    [
        (("up", *MODEL), 1),
        (("serve", *MODEL), 1),
        # As `ovchat up` starts it.
        (("serve", "--servers=1", *MODEL), 0),
    ],
    ids=["up", "serve", "a server of up"],
)
def test_it_is_logged_once(
    arguments: Sequence[str], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StartedError(Exception):
        pass

    def start(_settings: Settings) -> Settings:
        raise StartedError

    monkeypatch.setattr(cli, "_with_folders", start)
    monkeypatch.setattr(cli, "_end_on_ctrl_c", lambda: None)
    monkeypatch.setattr(cli, "configure_logs", lambda *_: None)
    monkeypatch.setattr(cli, "setproctitle", lambda _name: None)
    lines: list[str] = []
    monkeypatch.setattr(cli.logger, "warning", lines.append)

    result = CliRunner().invoke(cli.main, arguments, env={"OVCHAT_RESTPORT": "1"})

    assert isinstance(result.exception, StartedError)
    assert lines == [SAYS] * times
