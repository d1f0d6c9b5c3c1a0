"""The folder of `ovchat up` for sockets: nobody else enters it, and none is left."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.private_folder import private_folder

if TYPE_CHECKING:
    from pathlib import Path

# Is killed while it has its folder.
KILLED = """
import os, signal
from ovchat_server.launch.private_folder import private_folder
with private_folder() as folder:
    (folder / "socket").touch()
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_it_is_this_users_and_gone_at_the_end(temporary: Path) -> None:
    with private_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "socket").touch()
    assert not [*temporary.iterdir()]


def test_what_the_killed_have_left_is_removed_and_what_others_use_is_not(temporary: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    left = temporary / ended.stdout.strip()
    assert (left / "socket").exists()
    with private_folder() as first:
        assert not left.exists()
        (first / "socket").touch()
        with private_folder() as second:
            assert {*temporary.iterdir()} == {first, second}
    assert not [*temporary.iterdir()]


def test_where_it_cannot_be_is_told(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = temporary / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(LaunchError, match="is too long for sockets: set TMPDIR"), private_folder():
        pass
    assert not [*long.iterdir()]
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "none"))
    with pytest.raises(LaunchError, match="takes no folder for sockets: No such"), private_folder():
        pass


def test_where_there_is_no_folder_for_temporary_files_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(LaunchError, match="takes no folder for sockets"), private_folder():
        pytest.fail("there is none")
