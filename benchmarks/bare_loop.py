"""The ceiling: genai's pipeline in a loop, with nothing around it.

Run by `bare_process`, with the configuration and properties of the server's engine. Takes plans as
lines of JSON and answers each with a line of traces.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
import openvino as ov
import openvino_genai as genai

from benchmarks.plan import Ask, Lane, Plan, Trace
from benchmarks.request_forms import SEED, TEMPERATURE, TOP_K
from ovchat_server.engine.contract.generation_spec import GenerationSpec

# The server's own, so that it cannot differ.
from ovchat_server.engine.genai.configs import device_properties, scheduler_config
from ovchat_server.engine.genai.image_decoding import decode_image
from ovchat_server.engine.genai.image_encoder import IMAGE, TEMPLATE
from ovchat_server.serving.model_path import is_vision_model

if TYPE_CHECKING:
    from collections.abc import Callable

_Add: TypeAlias = "Callable[[int, Ask, genai.GenerationConfig], genai.GenerationHandle]"


@dataclass(slots=True)
class _Caller:
    """A lane on its way: what it still asks, when it asks next, and what is under way."""

    asks: list[Ask]
    due: float
    traces: list[Trace] = field(default_factory=list)
    handles: list[genai.GenerationHandle] = field(default_factory=list)


class Loop:
    """Runs plans on a pipeline."""

    def __init__(self, pipeline: genai.ContinuousBatchingPipeline, add: _Add) -> None:
        """Run on `pipeline`, to which `add` adds requests."""
        self._pipeline = pipeline
        self._request = add
        self._number = 0

    def run(self, plan: Plan) -> list[Trace]:
        """The traces, lane after lane."""
        return [trace for phase in plan.phases for trace in self._phase(phase)]

    def _phase(self, lanes: tuple[Lane, ...]) -> list[Trace]:
        start = time.perf_counter()
        callers = [_Caller(list(lane.asks), start + lane.delay) for lane in lanes]
        while waiting := [caller for caller in callers if caller.asks or caller.handles]:
            now = time.perf_counter()
            for caller in waiting:
                if not caller.handles and caller.due <= now:
                    self._add(caller)
            if self._pipeline.has_non_finished_requests():
                self._pipeline.step()
                moment = time.perf_counter()
                for caller in waiting:
                    _drain(caller, moment)
            else:
                time.sleep(max(min(caller.due for caller in waiting) - now, 0))
        return [trace for caller in callers for trace in caller.traces]

    def _add(self, caller: _Caller) -> None:
        ask = caller.asks.pop(0)
        for choice in range(ask.choices):
            self._number += 1
            config = _generation_config(ask, choice)
            caller.handles.append(self._request(self._number, ask, config))
        arrivals: dict[int, list[float]] = {choice: [] for choice in range(ask.choices)}
        trace = Trace(
            label=ask.label,
            # When the caller asks, which may have been in the middle of a step.
            start=caller.due,
            end=caller.due,
            arrivals=arrivals,
            prompt_tokens=len(ask.tokens),
            completion_tokens=0,
        )
        caller.traces.append(trace)


def _drain(caller: _Caller, moment: float) -> None:
    """Take what came of a caller's request."""
    for choice, handle in enumerate(caller.handles):
        while handle.can_read():
            for output in handle.read().values():
                if output.generated_ids:
                    caller.traces[-1].arrivals[choice].append(moment)
                    caller.traces[-1].completion_tokens += len(output.generated_ids)
    running = genai.GenerationStatus.RUNNING
    if caller.handles and all(handle.get_status() != running for handle in caller.handles):
        caller.traces[-1].end = caller.due = moment
        caller.handles = []


def _add_tokens(pipeline: genai.ContinuousBatchingPipeline) -> _Add:
    """Return what adds requests as tokens."""

    def add(number: int, ask: Ask, config: genai.GenerationConfig) -> genai.GenerationHandle:
        prompt = ov.Tensor(np.array([ask.tokens], dtype=np.int64))
        return pipeline.add_request(number, prompt, config)

    return add


def _add_conversations(
    pipeline: genai.ContinuousBatchingPipeline, tokenizer: genai.Tokenizer
) -> _Add:
    """Return what adds requests to a vision model, which takes texts and images only."""

    def add(number: int, ask: Ask, config: genai.GenerationConfig) -> genai.GenerationHandle:
        messages = [{"role": role, "content": text} for role, text in ask.messages]
        images = []
        if ask.image:
            messages[0]["content"] += IMAGE
            images.append(ov.Tensor(decode_image(ask.image)))
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        return pipeline.add_request(number, text, images, config)

    return add


def _generation_config(ask: Ask, choice: int) -> genai.GenerationConfig:
    config = genai.GenerationConfig()
    config.max_new_tokens = ask.max_tokens
    config.ignore_eos = ask.whole
    if ask.schema is not None:
        form = genai.StructuredOutputConfig()
        form.json_schema = json.dumps(ask.schema)
        config.structured_output_config = form
    if ask.choices > 1:
        config.do_sample = True
        config.temperature, config.top_k, config.rng_seed = TEMPERATURE, TOP_K, SEED + choice
    return config


def main() -> None:
    """Load the model, and answer plans until there are no more."""
    # What libraries print is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spec = msgspec.json.decode(sys.argv[1], type=GenerationSpec)
    tokenizer = genai.Tokenizer(spec.path)
    sees = is_vision_model(Path(spec.path))
    if sees:
        # It is given what the model's own made.
        tokenizer.set_chat_template(TEMPLATE)
    pipeline = genai.ContinuousBatchingPipeline(
        spec.path,
        tokenizer,
        scheduler_config(spec.options),
        spec.options.device,
        **device_properties(spec.options),
    )
    loop = Loop(
        pipeline,
        _add_conversations(pipeline, genai.Tokenizer(spec.path)) if sees else _add_tokens(pipeline),
    )
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        traces = loop.run(msgspec.json.decode(line, type=Plan))
        print(msgspec.json.encode(traces).decode(), file=answers, flush=True)


if __name__ == "__main__":
    main()
