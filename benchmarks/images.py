"""Images that no cache has seen."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    import random

# As phones take them, smaller.
SIZE = (2000, 1500)
# What is drawn at random is scaled up by this: files are then as large as those of photos.
GRAIN = 4
MIME_TYPE = "image/jpeg"


def draw_image(draw: random.Random) -> bytes:
    """Return the file of a new image."""
    width, height = (side // GRAIN for side in SIZE)
    grains = Image.frombytes("RGB", (width, height), draw.randbytes(3 * width * height))
    file = io.BytesIO()
    grains.resize(SIZE, Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()
