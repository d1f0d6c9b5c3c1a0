"""docs/architecture.md follows the code: its files exist, and a chat's path stays short."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
PACKAGE = ROOT / "server/ovchat_server"
# The most files that a chat passes on its way to the engine, and that its tokens pass back.
MAX_IN, MAX_OUT = 12, 8


def section(title: str) -> str:
    [text] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def stations(title: str) -> list[str]:
    """The files of a section's table, in their order."""
    return re.findall(r"^\| \d+ \| `([^`]+)` \|", section(title), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/(?:\w+\.\w+)?)`", PAGE))))
def test_what_the_page_names_exists(path: str) -> None:
    assert (PACKAGE / path).exists() or (ROOT / path).exists()


@pytest.mark.parametrize(
    ("title", "most"), [("The path of a chat, in", MAX_IN), ("The path of a chat, out", MAX_OUT)]
)
def test_the_path_of_a_chat_is_short(title: str, most: int) -> None:
    assert 0 < len(stations(title)) <= most
