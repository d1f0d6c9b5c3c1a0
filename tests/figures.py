"""Images that models/demo-vision has an answer to."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw


def figure(shape: str, colour: str, size: tuple[int, int] = (120, 120), form: str = "PNG") -> bytes:
    """The file of an image of a circle, a square or a triangle on a grey page."""
    image = Image.new("RGB", size, (200, 200, 200))
    draw = ImageDraw.Draw(image)
    (width, height), side = size, min(size)
    box = [
        (width - 0.7 * side) / 2,
        (height - 0.7 * side) / 2,
        (width + 0.7 * side) / 2,
        (height + 0.7 * side) / 2,
    ]
    if shape == "circle":
        draw.ellipse(box, fill=colour)
    elif shape == "square":
        draw.rectangle(box, fill=colour)
    else:
        draw.polygon([(box[0], box[3]), (width / 2, box[1]), (box[2], box[3])], fill=colour)
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()
