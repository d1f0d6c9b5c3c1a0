"""Decodes the files of images, which anybody may have made."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ovchat_server.domain.content import IMAGE_TYPES, ImageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

# As Pillow names them.
FORMATS = tuple(name.removeprefix("image/").upper() for name in IMAGE_TYPES)
# 120 MB decoded.
MAX_PIXELS = 40_000_000
# Encoders of some families, such as Qwen's, refuse longer ones.
MAX_ASPECT = 200
# What OpenAI shows a model of an image in low detail.
LOW_DETAIL = 512
# A JPEG may have any number of scans, each over all of its pixels. Programs write up to ten.
MAX_SCANS = 1000
MAX_SCANNED_PIXELS = 20 * MAX_PIXELS
# And of segments of metadata, for each of which Pillow copies those before it.
MAX_SEGMENTS = 1000
JPEG, SCAN, SEGMENT = b"\xff\xd8", b"\xff\xda", b"\xff\xe1"


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
    if not file:
        raise ImageError("is empty: it has no bytes", "empty_image_file")
    try:
        # Of damaged files Pillow writes any number of warnings.
        with warnings.catch_warnings(action="ignore"):
            return _decoded(file, low_detail=low_detail)
    except ImageError:
        raise
    except UnidentifiedImageError as error:
        formats = ", ".join(FORMATS[:-1])
        complaint = f"is not an image in {formats} or {FORMATS[-1]} format"
        raise ImageError(complaint, "invalid_image_format") from error
    except Image.DecompressionBombError as error:
        raise ImageError(f"has more than {MAX_PIXELS} pixels", "image_too_large") from error
    except Exception as error:  # of which Pillow's decoders raise every kind
        raise ImageError("is damaged: it cannot be decoded", "image_parse_error") from error


def _decoded(file: bytes, *, low_detail: bool) -> NDArray[np.uint8]:
    if file.startswith(JPEG) and (segments := file.count(SEGMENT)) > MAX_SEGMENTS:
        raise _excessive(f"{segments} segments of metadata")
    with Image.open(io.BytesIO(file), formats=FORMATS) as image:
        # Nothing but the header was read so far.
        _check_size(*image.size)
        # Of several images in one file Pillow says that it is another format.
        if file.startswith(JPEG):
            _check_scans(file.count(SCAN), *image.size)
        if low_detail:
            # JPEGs are decoded at a fraction of their size.
            image.draft("RGB", (LOW_DETAIL, LOW_DETAIL))
        image.load()
        # Damaged EXIF data are no reason to refuse the image.
        with contextlib.suppress(Exception):
            ImageOps.exif_transpose(image, in_place=True)
        pixels = _in_colour(image)
    if low_detail:
        pixels.thumbnail((LOW_DETAIL, LOW_DETAIL))
    return np.asarray(pixels)


def _check_size(width: int, height: int) -> None:
    size = f"{width}x{height}"
    if width * height > MAX_PIXELS:
        complaint = f"has more than {MAX_PIXELS} pixels: its size is {size}"
        raise ImageError(complaint, "image_too_large")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise ImageError(f"has sides of more than 1:{MAX_ASPECT}: its size is {size}")


def _check_scans(scans: int, width: int, height: int) -> None:
    if scans > MAX_SCANS or scans * width * height > MAX_SCANNED_PIXELS:
        raise _excessive(f"{scans} scans of {width}x{height} pixels")


def _excessive(what: str) -> ImageError:
    return ImageError(f"would take too long to decode: it has {what}", "image_parse_error")


def _in_colour(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # Grey of 16 bits, which Pillow would cut off above 255.
        grey = np.asarray(image) >> 8
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    white = Image.new("RGB", layer.size, "white")
    white.paste(layer, mask=layer)
    return white
