"""What `ovchat convert` does: a GGUF file to a folder in the cache, telling how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.folder import write_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.conversion.weight_form import WeightForm

# Between two lines about how far it is.
SECONDS = 2.0


def convert_file(file: Path, form: WeightForm, cache_dir: Path) -> Path:
    """Return the folder of a GGUF file, which is converted unless it was before.

    Raises:
        ConversionError: It cannot be.
    """

    def write(folder: Path) -> None:
        _say(f"converting {file.name}, once, in {cache_dir} (weights: {form})")
        write_folder(file, folder, form, _Progress(file.name))
        _say(f"converted {file.name}")

    return ConvertedModels(cache_dir).make(
        file, form, write, waits=lambda: _say(f"another process is converting {file.name}")
    )


class _Progress:
    """Tells how far it is, now and then."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = time.monotonic()

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now - self._told >= SECONDS:
            self._told = now
            _say(f"converting {self._name}: {share:.0%} of its weights are read")


def _say(text: str) -> None:
    click.echo(f"ovchat: {text}", err=True)
