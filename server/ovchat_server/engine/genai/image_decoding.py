"""Decodes the files of images, which anybody may have made."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ovchat_server.engine.contract.image_encoder import ImageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# 120 MB decoded.
MAX_PIXELS = 40_000_000
# Encoders of some families, such as Qwen's, refuse longer ones.
MAX_ASPECT = 200
# What OpenAI shows a model of an image in low detail.
LOW_DETAIL = 512


def decode_image(file: bytes, *, low_detail: bool = False) -> NDArray[np.uint8]:
    """Return the pixels of an image: height, width, RGB.

    Of animated images that is the first frame. It is turned as its EXIF data say, and stands on
    white where it is transparent.

    Args:
        file: The file, of one of FORMATS.
        low_detail: Whether to scale it down to fit in LOW_DETAIL by LOW_DETAIL.

    Raises:
        ImageError: It is none, is damaged, or is too large.
    """
    try:
        # Pillow warns of some of the sizes that are refused here.
        with warnings.catch_warnings(action="ignore"):
            image = Image.open(io.BytesIO(file), formats=FORMATS)
        with image:
            # Nothing but the header was read so far.
            _check_size(*image.size)
            if low_detail:
                # JPEGs are decoded at a fraction of their size.
                image.draft("RGB", (LOW_DETAIL, LOW_DETAIL))
            pixels = _in_colour(_upright(image))
    except ImageError:
        raise
    except UnidentifiedImageError as error:
        formats = ", ".join(FORMATS[:-1])
        raise ImageError(f"is not an image in {formats} or {FORMATS[-1]} format") from error
    except Image.DecompressionBombError as error:
        raise ImageError(f"has more than {MAX_PIXELS} pixels") from error
    except Exception as error:  # of which Pillow's decoders raise every kind
        raise ImageError("is damaged: it cannot be decoded") from error
    if low_detail:
        pixels.thumbnail((LOW_DETAIL, LOW_DETAIL))
    return np.asarray(pixels)


def _check_size(width: int, height: int) -> None:
    size = f"{width}x{height}"
    if width < 1 or height < 1:
        raise ImageError(f"is empty: its size is {size}")
    if width * height > MAX_PIXELS:
        raise ImageError(f"has more than {MAX_PIXELS} pixels: its size is {size}")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(f"has sides of more than 1:{MAX_ASPECT}: its size is {size}")


def _upright(image: Image.Image) -> Image.Image:
    image.load()
    # Damaged EXIF data are no reason to refuse the image.
    with contextlib.suppress(Exception):
        return ImageOps.exif_transpose(image)
    return image


def _in_colour(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # Grey of 16 bits, which Pillow would cut off above 255.
        grey = np.asarray(image).astype(np.int64) >> 8
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(white, layer).convert("RGB")
