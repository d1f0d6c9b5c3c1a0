"""The examples of docs/tls.md, in the order in which a person types them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tests.conftest import ROOT
from tests.rest.conftest import running_stack
from tests.rest.examples import run_commands, run_python
from tests.rest.test_examples import SCRIPTS, adapted

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from ovchat_server.settings import ModelSettings

BLOCKS = re.findall(
    r"^```(bash|python)\n(.*?)^```", (ROOT / "docs/tls.md").read_text(), re.MULTILINE | re.DOTALL
)
# What each says.
EXPECTED = ['"id":"demo"', '"id": "demo"', "['demo']", "demo\n", "localhost:9000", "SERVING"]


def test_they_work_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo: ModelSettings
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    (language, make), *others = BLOCKS
    assert (language, make) == ("bash", "ovchat tls dev-cert\n")
    assert "ovchat up --tls-cert tls/cert.pem --tls-key tls/key.pem" in run_commands(make)
    names = {"cert": "cert", "key": "key", "client-ca": "ca"}
    options = [f"--tls-{option}=tls/{name}.pem" for option, name in names.items()]
    with running_stack(tmp_path, demo, options=options) as stack:
        for (language, code), expected in zip(others, EXPECTED, strict=True):
            typed = adapted(code, stack)
            if language == "bash":
                output = run_commands(typed)
            else:
                [(output, error)] = run_python([typed])
                assert not error, error
            assert adapted(expected, stack) in output
