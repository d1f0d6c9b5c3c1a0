"""Make a release: its version in all files, the contract as it is promised, and the wheel.

    make release VERSION=x.y.z

What it changes is yours to look at: it commits nothing.
"""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "## [Unreleased]\n"
IMAGED = ("deploy/README.md", "deploy/kubernetes.yaml")


class ReleaseError(Exception):
    """It cannot be released; the message says why."""


def with_version(pyproject: str, version: str) -> str:
    """Return pyproject.toml with another version."""
    return _replaced(r'(?m)^version = ".*"$', f'version = "{version}"', pyproject)


def with_image(text: str, version: str) -> str:
    """Return a file of deploy/ with the image of another version."""
    return _replaced(r"\bovchat:\d+\.\d+\.\d+", f"ovchat:{version}", text)


def with_release(changelog: str, version: str, date: dt.date) -> str:
    """Return the changelog with what is unreleased as a version.

    Raises:
        ReleaseError: Nothing is unreleased, or the version is there already.
    """
    if f"\n## [{version}]" in changelog:
        raise ReleaseError(f"CHANGELOG.md has {version} already")
    _, found, after = changelog.partition(UNRELEASED)
    # Headings alone say nothing.
    if not re.sub(r"(?m)^### .*", "", after.partition("\n## ")[0]).strip():
        raise ReleaseError("CHANGELOG.md has nothing under [Unreleased]")
    return changelog.replace(found, f"{found}\n## [{version}] - {date}\n")


def _replaced(pattern: str, new: str, text: str) -> str:
    found, count = re.subn(pattern, new, text)
    if not count:
        raise ReleaseError(f"there is nothing like {pattern!r} to change")
    return found


def _run(*command: str) -> str:
    """Return what a command prints; where it fails, it has said why."""
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise ReleaseError(f"{ended.stdout}`{' '.join(command)}` failed")
    return ended.stdout


def release(version: str) -> None:
    """Make the release.

    Raises:
        ReleaseError: It cannot be made. What can be checked is checked before files change.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReleaseError(f"VERSION must be x.y.z, got {version!r}")
    if _run("git", "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed")
    python, contract = sys.executable, "protos/generate.py"
    today = dt.datetime.now(tz=dt.UTC).date()
    files = {
        "pyproject.toml": lambda text: with_version(text, version),
        "CHANGELOG.md": lambda text: with_release(text, version, today),
        **{name: lambda text: with_image(text, version) for name in IMAGED},
    }
    changed = {ROOT / name: change((ROOT / name).read_text()) for name, change in files.items()}
    _run(python, contract, "--breaking")
    for path, text in changed.items():
        path.write_text(text)
    _run(python, contract, "--release")
    _run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", ".")
    print(f"""\
dist/ovchat-{version}-py3-none-any.whl is built. Look at `git diff`, then:

  make test-all
  git commit --all --message 'Version {version}'
  git tag v{version}
  git push && git push origin v{version}
  twine upload dist/ovchat-{version}-py3-none-any.whl""")


if __name__ == "__main__":
    try:
        release(*sys.argv[1:])
    except ReleaseError as error:
        sys.exit(f"Error: {error}")
