"""Files that ship with ovchat: Envoy's configuration, the descriptor set, the demo model."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(path: str) -> Path:
    """Find a file or folder by where it is in the repository, such as "envoy/envoy.yaml".

    It is in the installed package, or else in the repository around it: an editable installation
    has no resources/.

    Raises:
        FileNotFoundError: It is in neither.
    """
    roots = (_PACKAGE / "resources", _PACKAGE.parents[1])
    for root in roots:
        if (root / path).exists():
            return root / path
    raise FileNotFoundError(f"{path} is not in {' or '.join(map(str, roots))}")
