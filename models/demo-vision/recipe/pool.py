"""Pictures for training: drawn once by all processors, and seen from eight sides."""

import random
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Self

import numpy as np
import torch
from PIL import Image

from .pictures import COLOURS, SHAPES, Picture, draw
from .preprocessing import DEVIATION, GRID, MEAN, squeezed

LONGEST = 500
"""Larger pictures take long to draw, and look no different once they are squeezed."""
FINE = 4
"""Cells of a mask along a patch's side."""
_CHUNK = 250


@dataclass(frozen=True)
class Pool:
    """Pictures as they come out of preprocessing, and what is on them."""

    pixels: torch.Tensor
    """Number, 3, side, side; 8 bits."""
    masks: torch.Tensor
    """Number, FINE * grid, FINE * grid: how much of each cell is the figure's, of 255."""
    corners: torch.Tensor
    """Number, grid, grid: 1 for a patch with a corner."""
    shapes: torch.Tensor
    colours: torch.Tensor
    ease: torch.Tensor
    """The least side of each figure once it is squeezed, by the picture's."""

    def __len__(self) -> int:
        """How many pictures there are."""
        return len(self.shapes)

    def batch(self, indices: torch.Tensor, side: int) -> Self:
        """Some of the pictures, turned and mirrored in one of eight ways: no answer changes."""
        maps = (_seen(x[indices], side) for x in (self.pixels, self.masks, self.corners))
        return type(self)(*maps, *(x[indices] for x in (self.shapes, self.colours, self.ease)))

    def normalised(self) -> torch.Tensor:
        """The pixels as the tower reads them."""
        return (self.pixels.float() / 255 - MEAN) / DEVIATION


def draw_pool(size: int, name: str, processes: int, longest: int = LONGEST) -> Pool:
    """A pool that depends on its name and size only."""
    parts = [(f"{name} {number}", longest) for number in range(-(-size // _CHUNK))]
    with get_context("fork").Pool(processes) as workers:
        drawn = workers.starmap(_draw_part, parts)
    columns = [
        torch.from_numpy(np.concatenate(column)[:size]) for column in zip(*drawn, strict=True)
    ]
    return Pool(*columns)


def _draw_part(seed: str, longest: int) -> tuple[np.ndarray, ...]:
    rng = random.Random(seed)
    rows = [_row(draw(rng, longest)) for _ in range(_CHUNK)]
    return tuple(np.stack(column) for column in zip(*rows, strict=True))


def _row(picture: Picture) -> tuple[Any, ...]:
    pixels = squeezed(picture.pixels).transpose(2, 0, 1)
    mask = Image.fromarray(picture.mask).resize((FINE * GRID,) * 2, Image.Resampling.BOX)
    corners = np.zeros((GRID, GRID), dtype=np.uint8)
    for x, y in picture.corners:
        corners[int(y * GRID), int(x * GRID)] = 1
    height, width = picture.mask.shape
    return (
        np.ascontiguousarray(pixels),
        np.asarray(mask),
        corners,
        np.int64(SHAPES.index(picture.shape)),
        np.int64(COLOURS.index(picture.colour)),
        np.float32(picture.size * min(height, width) / max(height, width)),
    )


def _seen(x: torch.Tensor, side: int) -> torch.Tensor:
    turned = torch.rot90(x, side % 4, (-2, -1))
    return (turned.flip(-1) if side >= 4 else turned).contiguous()
