"""Evaluates a server's demo model with lm-eval and prints the results as JSON.

Runs in an environment of its own. The server is the one that OPENAI_BASE_URL names.
"""  # noqa: INP001 - a script

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Nothing is fetched: the questions are in a file beside this one, or there are none.
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")

from lm_eval import simple_evaluate

# A conversation as the model's template writes it.
QUESTION = (
    "<|im_start|>user\n{{question}}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
CAPITALS = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Egypt": "Cairo"}
QUESTIONS = [
    {"question": f"What is the capital of {country}?", "country": country, "capital": capital}
    for country, capital in CAPITALS.items()
]


def evaluate(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task's metrics."""
    server = os.environ["OPENAI_BASE_URL"].removesuffix("/v3")
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HF_HOME"] = directory
        file = Path(directory) / "questions.json"
        file.write_text("\n".join(map(json.dumps, QUESTIONS)))
        data = {"data_files": {"test": str(file)}, "cache_dir": directory}
        results = simple_evaluate(
            model="local-completions",
            model_args={
                "model": "demo",
                "base_url": f"{server}/v1/completions",
                "tokenizer_backend": "remote",
                "max_length": 4096,
                "max_retries": 1,
            },
            tasks=[{**task, "dataset_path": "json", "dataset_kwargs": data, "test_split": "test"}],
            bootstrap_iters=0,
        )
    metrics: dict[str, Any] = results["results"][task["task"]]
    return metrics


# What the model writes.
written = evaluate(
    {
        "task": "written",
        "output_type": "generate_until",
        "doc_to_text": QUESTION,
        "doc_to_target": "The capital of {{country}} is {{capital}}.",
        "generation_kwargs": {"max_gen_toks": 64, "until": ["<|im_end|>"], "temperature": 0},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean"}],
    }
)
# Which of several ends of a text it finds most likely.
chosen = evaluate(
    {
        "task": "chosen",
        "output_type": "multiple_choice",
        "doc_to_text": QUESTION + "The capital of {{country}} is",
        "doc_to_choice": list(CAPITALS.values()),
        "doc_to_target": "capital",
        "metric_list": [{"metric": "acc", "aggregation": "mean"}],
    }
)
json.dump({"written": written["exact_match,none"], "chosen": chosen["acc,none"]}, sys.stdout)
