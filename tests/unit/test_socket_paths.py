"""--grpc-socket: what a server can listen on, and what it says of the rest."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.ports import check_socket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def listening(address: str, backlog: int = 1) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(backlog)
        yield


def test_a_socket_that_somebody_listens_on_is_in_use(tmp_path: Path) -> None:
    path = f"{tmp_path}/s"
    check_socket(path)
    with listening(path, 0):
        # The second time there is no place for another connection.
        for _ in range(2):
            with pytest.raises(LaunchError, match=f"socket {path} is in use: .*--grpc-socket"):
                check_socket(path)
    # It is left behind.
    check_socket(path)


def test_an_abstract_socket_is_in_use(tmp_path: Path) -> None:
    name = f"@{tmp_path.name}"
    check_socket(name)
    with listening(f"\0{name[1:]}"), pytest.raises(LaunchError, match=f"socket {name} is in use"):
        check_socket(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none/s", "there is no folder .*/none"),
        ("file", ".*/file is a file, not a socket"),
        ("", ".* is a folder, not a socket"),
        ("s" * 200, ".*path too long"),
    ],
)
def test_what_cannot_be_a_socket_is_named(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LaunchError, match=f"^--grpc-socket: {says}$"):
        check_socket(str(tmp_path / name))
