"""What `ovchat convert` does: a GGUF file to a folder in the cache, telling how far it is."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.folder import write_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.conversion.weight_form import WeightForm

# Between two lines about how far it is.
SECONDS = 2.0

logger = logging.getLogger(__name__)


def convert_file(file: Path, form: WeightForm, cache_dir: Path) -> Path:
    """Return the folder of a GGUF file, which is converted unless it was before.

    Raises:
        ConversionError: It cannot be.
    """
    # It tells of each file that it writes.
    logging.getLogger("gguf").setLevel(logging.WARNING)

    def write(folder: Path) -> None:
        text = "converting %s, once, in %s (weights: %s)"
        logger.info(text, file.name, cache_dir, form)
        write_folder(file, folder, form, _Progress(file.name))
        logger.info("converted %s", file.name)

    return ConvertedModels(cache_dir).make(
        file,
        form,
        write,
        waits=lambda: logger.info("another process is converting %s", file.name),
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
            logger.info("converting %s: %.0f %% of its weights are read", self._name, share * 100)
