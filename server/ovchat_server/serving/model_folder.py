"""What any model's folder holds, whatever kind of model it is."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from ovchat_server.serving.model_path import MODEL_FILE_SUFFIXES, folder_fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DIGEST_SPAN = 1 << 20


class ModelFilesError(Exception):
    """A folder is not a model that can be served; the message says why and which."""


class ModelFolder:
    """A model's folder. The weights are left to the engine."""

    def __init__(self, path: Path) -> None:
        """Open a folder.

        Raises:
            ModelFilesError: It is not that of a model.
        """
        if fault := folder_fault(path):
            raise ModelFilesError(fault)
        self.path = path

    def file(self, name: str) -> Path:
        """Return the path of a file that must be there.

        Raises:
            ModelFilesError: It is not.
        """
        path = self.path / name
        if not path.is_file():
            raise ModelFilesError(f"there is no {name} in {self.path}")
        return path

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file; an empty one where there is none.

        Raises:
            ModelFilesError: The file is not JSON.
        """
        value = self._read(name)
        return value if isinstance(value, dict) else {}

    def read_json_array(self, name: str) -> list[Any]:
        """Return the array in a JSON file; an empty one where there is none.

        Raises:
            ModelFilesError: The file is not JSON.
        """
        value = self._read(name)
        return value if isinstance(value, list) else []

    def _read(self, name: str) -> Any:  # noqa: ANN401  what a file holds
        path = self.path / name
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelFilesError(f"{path} is not JSON: {error}") from error

    def digest(self) -> str:
        """Return a digest over all files, the same for every copy of them.

        Of large ones only both ends: reading gigabytes of weights would take longer than loading
        the model does.
        """
        digest = hashlib.sha256()
        for path in sorted(self.path.iterdir()):
            if path.suffix not in MODEL_FILE_SUFFIXES:
                continue
            size = path.stat().st_size
            digest.update(f"{path.name}:{size}\n".encode())
            with path.open("rb") as file:
                digest.update(file.read(DIGEST_SPAN))
                file.seek(max(size - DIGEST_SPAN, 0))
                digest.update(file.read())
        return digest.hexdigest()


def first_integer(config: Mapping[str, Any], keys: Sequence[str]) -> int | None:
    """Return the first of `keys` that a model's configuration has, unless it is 0."""
    # Vision models keep their language part's configuration in a section of its own.
    for section in (config, config.get("text_config")):
        if isinstance(section, dict):
            for key in keys:
                if value := integer(section, key):
                    return value
    return None


def number(fields: Mapping[str, Any], name: str) -> float | None:
    """Return a number of a configuration; None where there is none."""
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def integer(fields: Mapping[str, Any], name: str) -> int | None:
    """Return an integer of a configuration; None where there is none."""
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
