"""Files that ship with ovchat, such as Envoy's configuration and the descriptor set."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(path: str) -> Path:
    """Find a file by where it is in the repository, such as "envoy/envoy.yaml".

    It is in the installed package, or else in the repository around it: an editable installation
    has no resources/.

    Raises:
        FileNotFoundError: It is in neither.
    """
    roots = (_PACKAGE / "resources", _PACKAGE.parents[1])
    for root in roots:
        if (root / path).is_file():
            return root / path
    raise FileNotFoundError(f"{path} is not in {' or '.join(map(str, roots))}")
