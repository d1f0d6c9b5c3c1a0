"""Files of images that nobody would make by accident."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    """The file of an image."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


SMALL = Image.new("RGB", (64, 48), "red")
PNG_HEAD = 33


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_size(width: int, height: int) -> bytes:
    """A PNG file that claims a size, and has as good as no pixels."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = png_chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + head + rows + png_chunk(b"IEND", b"")


def png_with(chunk: bytes) -> bytes:
    """A PNG file with one more chunk."""
    file = saved(SMALL, "PNG")
    return file[:PNG_HEAD] + chunk + file[PNG_HEAD:]


def jpeg_of_size(width: int, height: int) -> bytes:
    """A JPEG file that claims a size, with the data of a small one."""
    file = bytearray(saved(SMALL, "JPEG"))
    start = file.index(b"\xff\xc0") + 5
    file[start : start + 4] = struct.pack(">HH", height, width)
    return bytes(file)


def bmp_of_size(width: int, height: int) -> bytes:
    file = bytearray(saved(SMALL, "BMP"))
    file[18:26] = struct.pack("<ii", width, height)
    return bytes(file)


def gif_of_frame(width: int, height: int) -> bytes:
    """A GIF file whose frame is larger than its screen."""
    file = bytearray(saved(SMALL, "GIF"))
    start = file.index(b"\x2c", 13) + 5
    file[start : start + 4] = struct.pack("<HH", width, height)
    return bytes(file)


def webp_of_canvas(width: int, height: int) -> bytes:
    """A WebP file that claims a canvas, with a small frame."""
    frame = saved(SMALL, "WEBP", lossless=True)[12:]
    canvas = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + struct.pack("<I", len(canvas)) + canvas + frame
    return b"RIFF" + struct.pack("<I", len(body)) + body


def jpeg_of_scans(side: int, scans: int) -> bytes:
    """A progressive JPEG file that repeats its last scan: tens of bytes, and all pixels again."""
    file = saved(Image.new("L", (side, side)), "JPEG", progressive=True)
    last = file[file.rindex(b"\xff\xda") : -2]
    return file[:-2] + last * scans + file[-2:]


def with_index(file: bytes) -> bytes:
    """A JPEG file that says it is several images, as phones write them: Pillow calls it MPO."""
    several = io.BytesIO()
    SMALL.save(several, "MPO", save_all=True, append_images=[SMALL])
    start = several.getvalue().index(b"MPF\0") - 4
    length = int.from_bytes(several.getvalue()[start + 2 : start + 4])
    return file[:2] + several.getvalue()[start : start + 2 + length] + file[2:]


def exif(*tags: tuple[int, int, int, int]) -> bytes:
    """EXIF data of tags: number, type, count, and the value or where it is."""
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    data = b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"Exif\0\0" + data
