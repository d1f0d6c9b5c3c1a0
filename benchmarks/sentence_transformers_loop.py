"""sentence-transformers with its OpenVINO backend, asked by lines of JSON: see `embeddings`.

{"requests": [[...], ...]} is answered by the texts per second, one request after the other.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from sentence_transformers import SentenceTransformer


def main() -> None:
    """Answer until there are no more questions."""
    folder = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        # It looks for the graph in a folder of its own.
        copy = Path(name)
        (copy / "openvino").mkdir()
        for file in folder.iterdir():
            below = "openvino" if file.suffix in (".xml", ".bin") else ""
            (copy / below / file.name).symlink_to(file)
        model = SentenceTransformer(name, backend="openvino")
    print("{}", flush=True)
    for line in sys.stdin:
        requests = json.loads(line)["requests"]
        start = time.perf_counter()
        for texts in requests:
            model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)
        seconds = time.perf_counter() - start
        print(json.dumps({"texts/s": sum(map(len, requests)) / seconds}), flush=True)


if __name__ == "__main__":
    main()
