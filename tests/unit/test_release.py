"""`make release`: what it changes in files, and when it refuses to."""

from __future__ import annotations

import datetime as dt
import tomllib

import pytest

from deploy.release import (
    IMAGED,
    UNRELEASED,
    ReleaseError,
    release,
    with_image,
    with_release,
    with_version,
)
from tests.conftest import ROOT

DATE = dt.date(2030, 1, 2)
OLD = "## [0.1.0] - 2029-01-01\n\n### Added\n\n- All.\n"
CHANGELOG = f"# Changelog\n\n{UNRELEASED}\n### Fixed\n\n- A fault.\n\n{OLD}"


def test_the_version_is_the_projects_alone() -> None:
    before = (ROOT / "pyproject.toml").read_text()
    after = tomllib.loads(with_version(before, "9.8.7"))
    assert after["project"].pop("version") == "9.8.7"
    expected = tomllib.loads(before)
    del expected["project"]["version"]
    assert after == expected


def test_what_is_unreleased_becomes_the_version() -> None:
    assert with_release(CHANGELOG, "0.2.0", DATE) == (
        f"# Changelog\n\n{UNRELEASED}\n## [0.2.0] - 2030-01-02\n\n### Fixed\n\n- A fault.\n\n{OLD}"
    )


@pytest.mark.parametrize(
    "changelog",
    [
        f"# Changelog\n\n{UNRELEASED}\n{OLD}",
        f"# Changelog\n\n{UNRELEASED}\n### Added\n\n### Fixed\n\n{OLD}",
        f"# Changelog\n\n{UNRELEASED}",
        f"# Changelog\n\n{OLD}",
    ],
)
def test_a_release_of_nothing_is_refused(changelog: str) -> None:
    with pytest.raises(ReleaseError, match="nothing under"):
        with_release(changelog, "0.2.0", DATE)


def test_a_version_is_released_once() -> None:
    with pytest.raises(ReleaseError, match=r"has 0\.1\.0 already"):
        with_release(CHANGELOG, "0.1.0", DATE)


@pytest.mark.parametrize("name", IMAGED)
def test_the_image_is_the_versions(name: str) -> None:
    before = (ROOT / name).read_text()
    after = with_image(before, "9.8.7")
    assert "ovchat:9.8.7" in after
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert after.replace("ovchat:9.8.7", f"ovchat:{version}") == before


@pytest.mark.parametrize("version", ["", "1.2", "v1.2.3", "1.2.3rc1"])
def test_a_version_has_three_numbers(version: str) -> None:
    with pytest.raises(ReleaseError, match="VERSION must be"):
        release(version)
