"""Draws pictures of a circle, a square or a triangle. Needs Pillow and numpy only.

`held_out(seed)` gives a picture that training has not seen, and what is on it:

    python -m models.demo-vision.recipe.pictures 7 picture.png
"""

import colorsys
import io
import math
import random
import sys
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("circle", "square", "triangle")
# Ranges of hue in degrees, saturation and value, far enough apart to name them; then the colour
# that a page or a drawing program gives for the name.
_COLOURS = {
    "red": ((-10, 8), (0.75, 1), (0.7, 1), (255, 0, 0)),
    "green": ((92, 148), (0.6, 1), (0.4, 1), (0, 128, 0)),
    "blue": ((208, 243), (0.65, 1), (0.55, 1), (0, 0, 255)),
    "yellow": ((51, 63), (0.7, 1), (0.88, 1), (255, 255, 0)),
    "black": ((0, 360), (0, 0.3), (0, 0.12), (0, 0, 0)),
    "white": ((0, 360), (0, 0.04), (0.93, 1), (255, 255, 255)),
    "orange": ((22, 39), (0.8, 1), (0.9, 1), (255, 165, 0)),
    "purple": ((270, 302), (0.5, 1), (0.4, 0.8), (128, 0, 128)),
}
COLOURS = tuple(_COLOURS)
LEAST_SIDE, GREATEST_WIDTH, GREATEST_HEIGHT, GREATEST_ASPECT = 32, 2000, 1500, 3.0
LEAST_SIZE, GREATEST_SIZE = 1 / 6, 0.85
"""How large a figure is, by the shorter side of its picture."""
LEAST_PIXELS = 8
"""A triangle of fewer is none to the eye, either."""
LEAST_CONTRAST = 100
"""Distance of figure and background in RGB."""


@dataclass(frozen=True)
class Picture:
    """A picture, and what is on it."""

    pixels: np.ndarray
    """Height, width, RGB; 8 bits."""
    mask: np.ndarray
    """Height, width: how much of each pixel is the figure's, of 255."""
    corners: list[tuple[float, float]]
    """Where its corners are, by the picture's width and height; a circle has none."""
    shape: str
    colour: str
    size: float
    """Of the figure, by the shorter side."""

    @property
    def answer(self) -> str:
        """The right answer to "What is on the picture?"."""
        return f"{article(self.colour).capitalize()} {self.shape}."


def article(colour: str) -> str:
    """The colour behind its article."""
    return f"{'an' if colour == 'orange' else 'a'} {colour}"


def held_out(seed: int) -> Picture:
    """A picture that is in no training, of any size up to 2000x1500."""
    return draw(random.Random(f"held out {seed}"), GREATEST_WIDTH)


def draw(rng: random.Random, longest: int) -> Picture:
    """A random picture whose longer side is at most that."""
    width, height = _dimensions(rng, longest)
    shorter = min(width, height)
    least = max(LEAST_SIZE, LEAST_PIXELS / shorter)
    size = math.exp(rng.uniform(math.log(least), math.log(GREATEST_SIZE)))
    shape, colour = rng.choice(SHAPES), rng.choice(COLOURS)
    figure, ground = _colours(rng, colour)
    outline = _outline(rng, shape, (width, height), size * shorter)
    mask = _mask(rng, outline, (width, height))
    share = mask[..., None].astype(np.float32) / 255
    pixels = np.float32(ground) * (1 - share) + np.float32(figure) * share
    corners = [] if shape == "circle" else [(x / width, y / height) for x, y in outline]
    return Picture(_worn(rng, pixels), mask, corners, shape, colour, size)


def _dimensions(rng: random.Random, longest: int) -> tuple[int, int]:
    longer = math.exp(rng.uniform(math.log(LEAST_SIDE), math.log(longest)))
    aspect = 1.0 if rng.random() < 0.2 else rng.uniform(1, GREATEST_ASPECT)
    sides = (round(longer), max(round(longer / aspect), LEAST_SIDE))
    width, height = sides if rng.random() < 0.5 else sides[::-1]
    scale = min(1, GREATEST_WIDTH / width, GREATEST_HEIGHT / height)
    return round(width * scale), round(height * scale)


def _shade(rng: random.Random, colour: str) -> tuple[float, ...]:
    hues, saturations, values, plain = _COLOURS[colour]
    if rng.random() < 0.3:
        return plain
    hue = rng.uniform(*hues) / 360 % 1
    shade = colorsys.hsv_to_rgb(hue, rng.uniform(*saturations), rng.uniform(*values))
    return tuple(255 * part for part in shade)


def _colours(rng: random.Random, colour: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """A shade of the colour, and a background that it can be seen on."""
    while True:
        figure = _shade(rng, colour)
        if rng.random() < 0.7:
            ground = _shade(rng, rng.choice([name for name in COLOURS if name != colour]))
        else:  # one without a name here, such as grey, pink or brown
            ground = tuple(rng.uniform(0, 255) for _ in range(3))
        if math.dist(figure, ground) >= LEAST_CONTRAST:
            return figure, ground


def _outline(
    rng: random.Random, shape: str, dimensions: tuple[int, int], size: float
) -> list[tuple[float, float]]:
    """The figure's corners in pixels, turned, and somewhere in the picture."""
    if shape == "circle":
        points = [(size / 2, 360 / 64 * number) for number in range(64)]
    elif shape == "square":
        points = [(size / 2 * math.sqrt(2), 45 + 90 * number) for number in range(4)]
    else:
        points = [(size / math.sqrt(3), -90 + 120 * number) for number in range(3)]
    turn = rng.choice((0, rng.uniform(0, 360)))
    corners = [
        (far * math.cos(math.radians(turn + angle)), far * math.sin(math.radians(turn + angle)))
        for far, angle in points
    ]
    # A corner of a large square may not fit, turned: then it is as large as it can be.
    scale = 1.0
    for axis in (0, 1):
        extent = max(x[axis] for x in corners) - min(x[axis] for x in corners)
        scale = min(scale, 0.98 * dimensions[axis] / extent)
    corners = [(x * scale, y * scale) for x, y in corners]
    shift = []
    for axis in (0, 1):
        least, most = min(x[axis] for x in corners), max(x[axis] for x in corners)
        shift.append(rng.uniform(-least, dimensions[axis] - most))
    return [(x + shift[0], y + shift[1]) for x, y in corners]


def _mask(
    rng: random.Random, outline: list[tuple[float, float]], dimensions: tuple[int, int]
) -> np.ndarray:
    """The figure in white on black; its edges are smooth, or as hard as a program draws them."""
    fine = 1 if max(dimensions) > 700 or rng.random() < 0.2 else 4
    mask = Image.new("L", (dimensions[0] * fine, dimensions[1] * fine))
    ImageDraw.Draw(mask).polygon([(x * fine, y * fine) for x, y in outline], fill=255)
    return np.asarray(mask.reduce(fine) if fine > 1 else mask)


def _worn(rng: random.Random, pixels: np.ndarray) -> np.ndarray:
    """The pixels with a little noise, and as JPEG leaves them."""
    if rng.random() < 0.5:
        noise = np.random.default_rng(rng.getrandbits(32))
        pixels = pixels + noise.standard_normal(pixels.shape, np.float32) * rng.uniform(1, 10)
    picture = Image.fromarray(pixels.round().clip(0, 255).astype(np.uint8))
    if rng.random() < 0.4:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=rng.randint(50, 95))
        picture = Image.open(file).convert("RGB")
    return np.asarray(picture)


def main() -> None:
    """Write one held-out picture, and tell what is on it."""
    picture = held_out(int(sys.argv[1]))
    Image.fromarray(picture.pixels).save(sys.argv[2])
    print(picture.answer)


if __name__ == "__main__":
    main()
