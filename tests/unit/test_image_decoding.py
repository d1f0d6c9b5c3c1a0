"""Files of images, which anybody may have made: their pixels, or why there are none."""

from __future__ import annotations

import contextlib
import random
import resource
import warnings
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image, ImageCms

from ovchat_server.domain.content import ImageError
from ovchat_server.engine.genai.image_decoding import LOW_DETAIL, decode_image
from tests.hostile_images import (
    SMALL,
    bmp_of_size,
    exif,
    gif_of_frame,
    jpeg_of_scans,
    jpeg_of_size,
    png_chunk,
    png_of_size,
    png_with,
    saved,
    webp_of_canvas,
    with_index,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Colour = tuple[int, int, int]
RED, GREEN, BLUE, WHITE, GREY = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255,) * 3, (128,) * 3
BLACK = (0, 0, 0)
# Further than this nothing that loses quality strays on a large area.
CLOSE = 16


def halves(mode: str, left: object, right: object) -> Image.Image:
    """An image of two colours."""
    image = Image.new(mode, (64, 48), left)  # type: ignore[arg-type]
    image.paste(right, (32, 0, 64, 48))  # type: ignore[arg-type]
    return image


TWO = halves("RGB", RED, BLUE)
CLEAR = halves("RGBA", (*RED, 255), (*BLUE, 0))
PALETTE = TWO.convert("P", palette=Image.Palette.ADAPTIVE, colors=4)
GREY_16 = Image.fromarray(np.repeat([[0x8000, 0xFFFF]], [32], axis=1).repeat(48, 0).astype("u2"))


def rgb_16() -> bytes:
    """A PNG file of 16 bits a colour, which Pillow does not write."""
    row = b"\0" + b"\xff\x80\x00\x10\x00\x20" * 32 + b"\x00\x01\x00\x02\xff\xff" * 32
    head = png_chunk(b"IHDR", b"\0\0\0\x40\0\0\0\x30\x10\x02\0\0\0")
    rows = png_chunk(b"IDAT", zlib.compress(row * 48))
    return b"\x89PNG\r\n\x1a\n" + head + rows + png_chunk(b"IEND", b"")


# The colours of the left half and of the right one.
READ: dict[str, tuple[bytes, Colour, Colour]] = {
    "PNG": (saved(TWO, "PNG"), RED, BLUE),
    "PNG, clear": (saved(CLEAR, "PNG"), RED, WHITE),
    "PNG, half clear": (saved(halves("RGBA", (*RED, 128), BLACK), "PNG"), (255, 127, 127), BLACK),
    "PNG, one colour clear": (saved(TWO, "PNG", transparency=BLUE), RED, WHITE),
    "PNG, palette": (saved(PALETTE, "PNG"), RED, BLUE),
    "PNG, palette, clear": (
        saved(PALETTE, "PNG", transparency=PALETTE.getpixel((63, 0))),
        RED,
        WHITE,
    ),
    "PNG, grey": (saved(halves("L", 128, 255), "PNG"), GREY, WHITE),
    "PNG, grey, clear": (saved(halves("LA", (128, 255), (0, 0)), "PNG"), GREY, WHITE),
    "PNG, 1 bit": (saved(halves("1", 0, 1), "PNG"), BLACK, WHITE),
    "PNG, 1 bit, clear": (saved(halves("1", 0, 1), "PNG", transparency=0), WHITE, WHITE),
    "PNG, 16 bits of grey": (saved(GREY_16, "PNG"), GREY, WHITE),
    "PNG, 16 bits a colour": (rgb_16(), (255, 0, 0), BLUE),
    "PNG, animated": (
        saved(TWO, "PNG", save_all=True, append_images=[SMALL]),
        RED,
        BLUE,
    ),
    "JPEG": (saved(TWO, "JPEG"), RED, BLUE),
    "JPEG, progressive": (saved(TWO, "JPEG", progressive=True), RED, BLUE),
    "JPEG, grey": (saved(halves("L", 128, 255), "JPEG"), GREY, WHITE),
    "JPEG, CMYK": (saved(TWO.convert("CMYK"), "JPEG"), RED, BLUE),
    "JPEG, several": (saved(TWO, "MPO", save_all=True, append_images=[SMALL]), RED, BLUE),
    "WebP": (saved(TWO, "WEBP"), RED, BLUE),
    "WebP, clear": (saved(CLEAR, "WEBP", lossless=True), RED, WHITE),
    "WebP, animated": (saved(TWO, "WEBP", save_all=True, append_images=[SMALL]), RED, BLUE),
    "GIF": (saved(TWO, "GIF"), RED, BLUE),
    "GIF, clear": (saved(CLEAR, "GIF"), RED, WHITE),
    "GIF, animated": (saved(TWO, "GIF", save_all=True, append_images=[SMALL]), RED, BLUE),
    "BMP": (saved(TWO, "BMP"), RED, BLUE),
    "BMP, from top to bottom": (bmp_of_size(64, -48), RED, RED),
    "PNG, with a colour profile": (
        saved(
            TWO,
            "PNG",
            icc_profile=ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
        ),
        RED,
        BLUE,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_an_image_is_read_in_colour(name: str) -> None:
    file, left, right = READ[name]
    pixels = decode_image(file)
    assert (pixels.shape, pixels.dtype) == ((48, 64, 3), np.uint8)
    np.testing.assert_allclose(pixels[24, [8, 56]].astype(int), [left, right], atol=CLOSE)


def corners() -> Image.Image:
    """An image with another colour in each quarter."""
    image = Image.new("RGB", (64, 48), RED)
    for place, colour in (((32, 0), GREEN), ((0, 24), BLUE), ((32, 24), WHITE)):
        image.paste(colour, (*place, place[0] + 32, place[1] + 24))
    return image


ORIENTATION, SHORT, RATIONAL, SIGNED = 0x112, 3, 5, 8
# What EXIF means by a number: what is shown at the top, on the left and on the right.
SHOWN = {
    1: (RED, GREEN), 2: (GREEN, RED), 3: (WHITE, BLUE), 4: (BLUE, WHITE),
    5: (RED, BLUE), 6: (BLUE, RED), 7: (WHITE, GREEN), 8: (GREEN, WHITE),
}  # fmt: skip


def turned(number: int, form: str = "JPEG", *tags: tuple[int, int, int, int]) -> bytes:
    return saved(corners(), form, exif=exif((ORIENTATION, SHORT, 1, number), *tags), quality=95)


TURNED = {
    **{f"JPEG {number}": (turned(number), number) for number in SHOWN},
    "PNG": (turned(6, "PNG"), 6),
    "WebP": (turned(6, "WEBP"), 6),
    "behind a damaged tag": (turned(6, "JPEG", (0x11A, RATIONAL, 1, 1 << 30)), 6),
    # A resolution unit below 0, which Pillow reads, and cannot write.
    "behind a wrong tag": (turned(6, "JPEG", (0x128, SIGNED, 1, 0xFFFF)), 6),
    "an unknown orientation": (turned(77), 1),
    "EXIF of nothing": (saved(corners(), "JPEG", exif=b"Exif\0\0"), 1),
    "EXIF of no sense": (saved(corners(), "JPEG", exif=b"Exif\0\0" + bytes(range(256))), 1),
    "EXIF cut off": (saved(corners(), "JPEG", exif=exif((ORIENTATION, SHORT, 1, 6))[:20]), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("low_detail", [False, True])
def test_an_image_is_turned_as_its_exif_says(name: str, *, low_detail: bool) -> None:
    file, number = TURNED[name]
    pixels = decode_image(file, low_detail=low_detail)
    height, width = pixels.shape[:2]
    assert (width, height) == ((64, 48) if number < 5 else (48, 64))
    top = pixels[height // 4, [width // 4, 3 * width // 4]].astype(int)
    np.testing.assert_allclose(top, SHOWN[number], atol=2 * CLOSE)


def test_damaged_exif_data_are_not_warned_of() -> None:
    with warnings.catch_warnings(action="error"):
        decode_image(turned(6, "JPEG", *[(tag, RATIONAL, 9, 1 << 30) for tag in range(600, 999)]))


@pytest.mark.parametrize(
    ("size", "low"),
    {
        (2048, 1024): (512, 256),
        (600, 900): (341, 512),
        (513, 3): (512, 3),
        (100, 40): (100, 40),
        (1200, 6): (512, 3),
        (190, 1): (190, 1),
        (1600, 8): (512, 3),
    }.items(),
    ids=str,
)
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_in_low_detail_it_is_no_larger_than_it_was(
    size: tuple[int, int], low: tuple[int, int], form: str
) -> None:
    height, width, _ = decode_image(saved(Image.new("RGB", size), form), low_detail=True).shape
    assert (width, height) == low
    assert max(low) <= LOW_DETAIL


UNKNOWN = ("is not an image in PNG, JPEG, WEBP, GIF or BMP format", "invalid_image_format")
DAMAGED = ("is damaged: it cannot be decoded", "image_parse_error")


def large(size: str = "") -> tuple[str, str]:
    size = size and f": its size is {size}"
    return f"has more than 40000000 pixels{size}", "image_too_large"


def slow(what: str) -> tuple[str, str]:
    return f"would take too long to decode: it has {what}", "image_parse_error"


def long(size: str) -> tuple[str, str]:
    return f"has sides of more than 1:200: its size is {size}", "invalid_image"


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>'
INFLATED = zlib.compress(bytes(64 << 20))
REFUSED: dict[str, tuple[bytes, tuple[str, str]]] = {
    "nothing": (b"", ("is empty: it has no bytes", "empty_image_file")),
    "text": (b"What is in this image?", UNKNOWN),
    "SVG": (SVG, UNKNOWN),
    "TIFF": (saved(SMALL, "TIFF"), UNKNOWN),
    "PDF": (saved(SMALL, "PDF"), UNKNOWN),
    "a PNG file of nothing": (b"\x89PNG\r\n\x1a\n", UNKNOWN),
    **{f"half a {form} file": (saved(TWO, form)[: len(saved(TWO, form)) // 2], DAMAGED)
       for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP")},
    "PNG of 20000x20000": (png_of_size(20000, 20000), large()),
    "PNG of 7000x7000": (png_of_size(7000, 7000), large("7000x7000")),
    "PNG of the largest size": (png_of_size(2**31 - 1, 2**31 - 1), large()),
    "PNG of 0x9": (png_of_size(0, 9), UNKNOWN),
    "PNG of 100000x1": (png_of_size(100_000, 1), long("100000x1")),
    "PNG of 1x201": (png_of_size(1, 201), long("1x201")),
    "PNG without its pixels": (png_of_size(6000, 6000), DAMAGED),
    "PNG with zTXt": (png_with(png_chunk(b"zTXt", b"Comment\0\0" + INFLATED)), DAMAGED),
    "PNG with iTXt": (png_with(png_chunk(b"iTXt", b"Comment\0\1\0\0\0" + INFLATED)), DAMAGED),
    "PNG with iCCP": (png_with(png_chunk(b"iCCP", b"sRGB\0\0" + INFLATED)), DAMAGED),
    "JPEG of 60000x60000": (jpeg_of_size(60000, 60000), large()),
    "JPEG of 0x0": (jpeg_of_size(0, 0), UNKNOWN),
    "JPEG of many scans": (jpeg_of_scans(400, 6000), slow("6006 scans of 400x400 pixels")),
    "JPEG of scans that are large": (
        jpeg_of_scans(2000, 250), slow("256 scans of 2000x2000 pixels")
    ),
    "JPEG of many scans that says it is several images": (
        with_index(jpeg_of_scans(400, 6000)), slow("6006 scans of 400x400 pixels")
    ),
    "JPEG of many segments": (
        saved(SMALL, "JPEG").replace(b"\xff\xd8", b"\xff\xd8" + b"\xff\xe1\0\x02" * 1001),
        slow("1001 segments of metadata"),
    ),
    "BMP of 30000x-30000": (bmp_of_size(30000, -30000), large()),
    "BMP of the largest size": (bmp_of_size(2**31 - 1, -(2**31)), large()),
    "BMP of a negative width": (bmp_of_size(-64, 48), large()),
    "GIF with a frame of 60000x60000": (gif_of_frame(60000, 60000), large()),
    "GIF with a frame of 7000x7000": (gif_of_frame(7000, 7000), large("7000x7000")),
    "WebP of 16384x16384": (webp_of_canvas(16384, 16384), large()),
    "WebP of 60000x60000": (webp_of_canvas(60000, 60000), large()),
}  # fmt: skip


@contextlib.contextmanager
def room(megabytes: int) -> Iterator[None]:
    """This process may have so much more memory, from here on."""
    pages = int(open("/proc/self/statm").read().split()[0])  # noqa: PTH123, SIM115
    limit, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_for_its_own_reason(name: str) -> None:
    file, reason = REFUSED[name]
    with pytest.raises(ImageError) as caught, room(200 if "without" in name else 40):
        decode_image(file)
    assert (caught.value.complaint, caught.value.code) == reason


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_nothing_but_a_verdict_comes_of_damage(form: str) -> None:
    file = turned(6, form) if form in ("PNG", "JPEG", "WEBP") else saved(TWO, form)
    chance = random.Random(form)
    with room(2000):
        for _ in range(200):
            damaged = bytearray(file)
            for _ in range(chance.randint(1, 8)):
                damaged[chance.randrange(len(file))] = chance.randrange(256)
            with contextlib.suppress(ImageError):
                assert decode_image(bytes(damaged)).ndim == 3
