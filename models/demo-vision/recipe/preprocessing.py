"""Makes of any picture what the vision tower reads, to the bit as OpenVINO GenAI does it.

OpenVINO GenAI scales a picture so that its shorter side has `shortest_edge` pixels, but to no less
than `crop_size` in either direction, and cuts `crop_size` out of the middle. With a shortest edge
of 1 both sides become `crop_size`: the picture is squeezed, and nothing at its sides is lost.
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image

SIDE, PATCH = 112, 14
GRID = SIDE // PATCH
TOKENS = GRID * GRID
"""How many tokens a picture takes."""
MEAN, DEVIATION = 0.5, 0.5

_CONFIGURATION = {
    "image_processor_type": "CLIPImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "size": {"shortest_edge": 1},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": SIDE, "width": SIDE},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [MEAN] * 3,
    "image_std": [DEVIATION] * 3,
}


def squeezed(pixels: np.ndarray) -> np.ndarray:
    """The picture as a square of `SIDE`."""
    return np.asarray(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def write_configuration(folder: Path) -> None:
    """Writes preprocessor_config.json."""
    text = json.dumps(_CONFIGURATION, indent=2) + "\n"
    (folder / "preprocessor_config.json").write_text(text, encoding="utf-8")
