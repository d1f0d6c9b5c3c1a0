"""Padding of prompt lookup does not go through the model, which says the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino_genai as genai
import pytest

from ovchat_server.engine.genai.hooked_model import GRAPH, hooked_model
from ovchat_server.engine.genai.logits_hook import logits_hook
from ovchat_server.engine.genai.model_graph import Graph
from ovchat_server.engine.genai.python_operation import python_operation
from tests.conftest import EXACT, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino as ov

FOLDER = ROOT / "models/demo"
PADDING = -1
# Fewer than the longest prompt has.
STEP_TOKENS = 32


@dataclass(frozen=True)
class Request:
    text: str
    candidates: int
    tokens: int = 30
    echo: bool = False


REQUESTS = [
    Request("The cat sat. The cat sat. The cat", candidates=1),
    Request("a b c d e f a b c", candidates=5),
    Request("What is the capital of France?", candidates=3, tokens=12),
    Request("What was said before is said again. " * 6, candidates=3),
    Request("What is said is echoed.", candidates=2, echo=True),
    Request("x", candidates=4),
]


@dataclass(frozen=True)
class Answer:
    tokens: list[int]
    logprobs: list[float]


@dataclass(frozen=True)
class Step:
    """What a step read, the logits of it, and how many rows went through the model."""

    tokens: list[int]
    positions: list[int]
    logits: int
    rows: int


def answers(folder: str, *, looks_up: bool, **properties: Any) -> list[Answer]:
    """What all requests are answered, side by side."""
    config = genai.SchedulerConfig()
    config.num_kv_blocks = 100
    config.max_num_batched_tokens = STEP_TOKENS
    config.enable_prefix_caching = True
    if looks_up:
        properties["prompt_lookup"] = True
    pipeline = genai.ContinuousBatchingPipeline(folder, config, "CPU", {**EXACT, **properties})
    handles = [
        pipeline.add_request(
            number,
            genai.Tokenizer(folder).encode(request.text).input_ids,
            generation_config(request, looks_up=looks_up),
        )
        for number, request in enumerate(REQUESTS)
    ]
    while pipeline.has_non_finished_requests():
        pipeline.step()
    outputs = [output for handle in handles for output in handle.read_all()]
    return [Answer(list(item.generated_ids), list(item.generated_log_probs)) for item in outputs]


def generation_config(request: Request, *, looks_up: bool) -> genai.GenerationConfig:
    config = genai.GenerationConfig(max_new_tokens=request.tokens, ignore_eos=True)
    config.echo = request.echo
    config.logprobs = 1
    if looks_up:
        config.num_assistant_tokens, config.max_ngram_size = request.candidates, 2
    return config


def watch_rows(folder: Path, steps: list[Step]) -> list[ov.OpExtension]:
    """Have the first layer's activation add the number of rows to `steps`.

    Returns:
        The operations that the folder's model needs.
    """
    rows: list[int] = []

    def count(outputs: Sequence[ov.Tensor], inputs: Sequence[ov.Tensor]) -> None:
        rows.append(inputs[0].shape[0])
        outputs[0].shape = (1, 1, 1)
        outputs[0].data[...] = 0

    def look(logits: np.ndarray, tokens: np.ndarray, positions: np.ndarray, _: object) -> None:
        steps.append(Step(tokens.tolist(), positions.tolist(), len(logits), rows[-1]))

    graph = Graph(folder / GRAPH)
    activation = graph.layers("Swish")[0]
    [source] = graph.inputs(activation)
    [nothing] = graph.insert("Rows", "extension", [source], [(source.precision, ["-1"] * 3)])
    outputs = [(source.precision, source.shape)]
    [same] = graph.insert("Add", "opset1", [source, nothing], outputs, auto_broadcast="numpy")
    graph.feed(activation, 0, same)
    graph.write(folder / GRAPH)
    return [python_operation("Rows", [[-1, -1, -1]], count), logits_hook(look)]


# A process can have one operation of each name.
@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return []


@pytest.fixture(scope="module")
def looked_up(steps: list[Step]) -> list[Answer]:
    with hooked_model(str(FOLDER), "CPU", leaves_out_padding=True) as hooked:
        assert hooked is not None
        operations = watch_rows(Path(hooked.path), steps)
        return answers(hooked.path, looks_up=True, extensions=operations)


def test_the_model_says_the_same(looked_up: list[Answer]) -> None:
    plain = answers(str(FOLDER), looks_up=False)
    assert [item.tokens for item in looked_up] == [item.tokens for item in plain]
    for request, found, expected in zip(REQUESTS, looked_up, plain, strict=True):
        # With prompt lookup genai's logprobs of echoed prompts are wrong, without a hook as well.
        ours, theirs = (answer.logprobs[-request.tokens :] for answer in (found, expected))
        np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.usefixtures("looked_up")
def test_padding_does_not_go_through_it(steps: list[Step]) -> None:
    padded = [step for step in steps if PADDING in step.tokens]
    assert len(padded) > 5
    assert any(PADDING not in step.tokens for step in steps)
    for step in steps:
        assert step.rows == len(step.tokens) - step.tokens.count(PADDING)


@pytest.mark.usefixtures("looked_up")
def test_the_hook_sees_it(steps: list[Step]) -> None:
    assert all(len(step.positions) == len(step.tokens) for step in steps)
    # Where no prompt is read, genai has the logits of all rows computed.
    assert any(step.logits == len(step.tokens) for step in steps if PADDING in step.tokens)
