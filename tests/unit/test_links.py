"""Links in Markdown lead somewhere, to every page of docs/; the README is short."""

from __future__ import annotations

import re
import subprocess
from pathlib import PurePosixPath

import pytest

from tests.conftest import ROOT

LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT,
    capture_output=True,
    check=True,
    text=True,
).stdout.splitlines()
PAGES = sorted(name for name in LISTED if (ROOT / name).is_file())
# Code has brackets of its own.
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTERNAL = re.compile(r"[a-z]+:")


def links(page: str) -> list[tuple[str, str]]:
    """The file, from the repository's root, and the heading of each link to a file."""
    found = []
    for target in LINK.findall(CODE.sub("``", (ROOT / page).read_text())):
        if not EXTERNAL.match(target):
            name, _, heading = target.partition("#")
            path = (ROOT / page).parent / name if name else ROOT / page
            found.append((str(PurePosixPath(path.resolve().relative_to(ROOT))), heading))
    return found


def headings(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for name, heading in links(page):
        assert (ROOT / name).exists(), name
        assert not heading or heading in headings(name), f"{name}#{heading}"


def test_every_page_of_docs_can_be_reached_from_the_readme() -> None:
    reached, new = set(), {"README.md"}
    while new:
        reached |= new
        new = {name for page in new for name, _ in links(page) if name in PAGES} - reached
    assert {page for page in PAGES if page.startswith("docs/")} <= reached


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
