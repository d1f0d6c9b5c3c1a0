"""Scores every skill on OpenVINO GenAI without a server: `python -m models.demo.recipe.offline`."""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
import openvino_genai
from openvino import Tensor
from tokenizers import Tokenizer

from .conversations import EXTRAS, SKILLS
from .report import (
    MAX_TOKENS,
    PROMISE,
    Mistakes,
    held_out_samples,
    print_mistakes,
    print_scores,
    wrong_answers,
)
from .samples import Answer, Call, Sample
from .template import MODEL_DIR, prompt_text

_CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"\A<think>\n(.*?)\n</think>\n\n", re.DOTALL)


def parse(text: str) -> Answer:
    """The parts of what the model wrote."""
    reasoning = ""
    if thought := _THOUGHT.match(text):
        reasoning, text = thought[1], text[thought.end() :]
    calls: list[Call] = []
    for body in _CALL.findall(text):
        try:
            call = json.loads(body)
            calls.append(Call(call["name"], call["arguments"]))
        except (json.JSONDecodeError, KeyError, TypeError):
            calls.append(Call("<not JSON>", {"text": body}))
    return Answer(_CALL.sub("", text).strip(), reasoning, tuple(calls))


class Pipeline:
    """The exported model in continuous batching, as a server runs it."""

    def __init__(self, folder: Path, *, exact: bool) -> None:
        """Loads the model; `exact` computes in 32 bits throughout."""
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.num_kv_blocks = 512
        scheduler.enable_prefix_caching = True
        scheduler.max_num_batched_tokens = 2048
        precision = (
            {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"} if exact else {}
        )
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(
            str(folder), scheduler, "CPU", precision
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._config = openvino_genai.GenerationConfig(str(folder / "generation_config.json"))
        self._config.max_new_tokens = MAX_TOKENS

    def answer(self, samples: list[Sample]) -> list[Answer]:
        """Greedy answers, a few at a time so that the cache never runs out."""
        answers: list[Answer] = []
        for start in range(0, len(samples), 6):
            prompts = [
                self._tokenizer.encode(prompt_text(sample)).ids
                for sample in samples[start : start + 6]
            ]
            tensors = [Tensor(np.array([ids], dtype=np.int64)) for ids in prompts]
            results = self._pipeline.generate(tensors, [self._config] * len(tensors))
            for result in results:
                ids = [
                    token
                    for token in result.m_generation_ids[0]
                    if token != self._tokenizer.token_to_id("<|im_end|>")
                ]
                answers.append(parse(self._tokenizer.decode(ids, skip_special_tokens=False)))
        return answers


def main() -> None:
    """Prints a table of the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL_DIR, help="the exported model")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument(
        "--default-precision", action="store_true", help="what the CPU prefers instead of 32 bits"
    )
    parser.add_argument("--mistakes", action="store_true")
    parser.add_argument("--ask", help="answer one question and end")
    options = parser.parse_args()
    pipeline = Pipeline(options.model, exact=not options.default_precision)
    if options.ask:
        sample = Sample("", [{"role": "user", "content": options.ask}], Answer())
        print(pipeline.answer([sample])[0].as_text())
        return
    scores: dict[str, float] = {}
    mistakes: Mistakes = {}
    for skill in [*SKILLS, *(skill for skill in EXTRAS if skill != "free")]:
        asked = held_out_samples(skill, options.samples)
        mistakes[skill] = wrong_answers(asked, pipeline.answer(asked))
        scores[skill] = 1 - len(mistakes[skill]) / options.samples
    print_scores(scores, options.samples)
    if options.mistakes:
        print_mistakes(mistakes)
    sys.exit(min(scores[skill] for skill in SKILLS) < PROMISE)


if __name__ == "__main__":
    main()
