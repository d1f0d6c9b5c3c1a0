"""A bare loop of an embedding model: `embedding_loop.py FOLDER`, asked by lines of JSON.

It has all tokens before the time begins. {"texts": [...], "one_by_one": false} is answered by the
texts per second, in batches of the size that was the fastest on the first texts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
import tokenizers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUDGETS = (128, 256, 512, 1024, 2048, 4096)


class Loop:
    """The model and nothing else."""

    def __init__(self, folder: Path) -> None:
        """Load it."""
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        properties = {"PERFORMANCE_HINT": "LATENCY"}
        model = ov.Core().compile_model(folder / "openvino_model.xml", "CPU", properties)
        self._request = model.create_infer_request()
        self._budget = 0

    def rate(self, texts: Sequence[str], *, one_by_one: bool) -> float:
        """Texts per second."""
        tokens = [item.ids for item in self._tokenizer.encode_batch(texts)]
        if one_by_one:
            return len(texts) / self._seconds([[item] for item in tokens])
        tokens.sort(key=len)
        if not self._budget:
            # Twice: the first time makes kernels for new shapes.
            self._budget = min(
                BUDGETS,
                key=lambda budget: [
                    self._seconds([*batches(tokens[::4], budget)]) for _ in range(2)
                ][1],
            )
            print(f"the best batch has {self._budget} tokens", file=sys.stderr)
        return len(texts) / self._seconds([*batches(tokens, self._budget)])

    def _seconds(self, found: Sequence[Sequence[Sequence[int]]]) -> float:
        start = time.perf_counter()
        for batch in found:
            ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
            mask = np.zeros_like(ids)
            for row, item in enumerate(batch):
                ids[row, : len(item)] = item
                mask[row, : len(item)] = 1
            inputs = {
                "input_ids": ids,
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(ids),
            }
            states = self._request.infer(inputs, share_outputs=True)[0]
            weights = mask[:, :, None].astype(np.float32)
            vectors = (states * weights).sum(1) / weights.sum(1)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return time.perf_counter() - start


def batches(tokens: Sequence[Sequence[int]], budget: int) -> Iterator[Sequence[Sequence[int]]]:
    """Texts that are sorted by length, together as long as their padded size is in the budget."""
    batch: list[Sequence[int]] = []
    for item in tokens:
        if batch and (len(batch) + 1) * len(item) > budget:
            yield batch
            batch = []
        batch.append(item)
    yield batch


def main() -> None:
    """Answer until there are no more questions."""
    loop = Loop(Path(sys.argv[1]))
    print("{}", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        rate = loop.rate(question["texts"], one_by_one=question["one_by_one"])
        print(json.dumps({"texts/s": rate}), flush=True)


if __name__ == "__main__":
    main()
