"""How `make bench` compares ours with ours, on texts that mean something."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from benchmarks.measured import check
from benchmarks.plan import Ask, Trace
from benchmarks.prompts import Prompts
from benchmarks.report import Result, write
from benchmarks.request_forms import grpc_request, rest_body
from benchmarks.scales import SCALES
from benchmarks.service import _table
from benchmarks.workloads import OF_TEXTS, WORKLOADS

PROMPTS = Prompts((" word",), 1, 10, random.Random(1))


def asks_of(name: str) -> list[list[Ask]]:
    """The requests of each caller."""
    (lanes,) = WORKLOADS[name].plan(PROMPTS, SCALES["smollm2"]).phases
    return [list(lane.asks) for lane in lanes]


def trace_of(tokens: int) -> Trace:
    return Trace(
        label="", start=0, end=1, arrivals={0: [1]}, prompt_tokens=0, completion_tokens=tokens
    )


@pytest.mark.parametrize("streams", [4, 16])
def test_callers_share_the_same_small_talk(streams: int) -> None:
    callers = asks_of(f"talk-{streams}")
    assert len(callers) == streams
    shared = sorted(ask.messages for asks in callers for ask in asks)
    assert shared == sorted(ask.messages for ask in asks_of("talk-1")[0])


@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_model_ends_its_answer_to_a_text_itself(name: str) -> None:
    ask = asks_of(name)[0][0]
    assert not rest_body("m", ask)["ignore_eos"]
    assert not grpc_request("m", ask).ignore_eos


def test_only_an_answer_that_may_end_is_shorter_than_asked() -> None:
    plan = WORKLOADS["quote-1"].plan(PROMPTS, SCALES["smollm2"])
    asks = plan.phases[0][0].asks
    check(plan, [trace_of(1) for ask in asks])
    whole = WORKLOADS["decode-1"].plan(PROMPTS, SCALES["smollm2"])
    asks = whole.phases[0][0].asks
    check(whole, [trace_of(ask.max_tokens) for ask in asks])
    with pytest.raises(RuntimeError, match="1 out instead of"):
        check(whole, [trace_of(1) for ask in asks])


def test_a_service_is_started_with_options_of_its_model() -> None:
    text = _table(Path("m"), {"A": 1}, {"speculation": "lookup"})
    (model,) = tomllib.loads(text)["models"]
    assert (model["speculation"], model["properties"]) == ("lookup", {"A": 1})


def test_prompt_lookup_is_compared_with_ours_without_it_in_the_same_round(tmp_path: Path) -> None:
    rounds = [
        {"bare loop": {"tokens/s": 10.0}, "REST": {"tokens/s": rest}, "lookup": {"tokens/s": 8.0}}
        for rest in (4.0, 4.0, 16.0)
    ]
    result = Result(
        model="m",
        machine={"command": "c"},
        client={},
        workloads={"quote-1": "q"},
        rounds={"quote-1": rounds},
    )
    lines = write(result, tmp_path, "m").read_text().splitlines()
    table = lines[lines.index("| | lookup / REST |") :]
    assert table[2] == "| tokens/s | 2 [0.5 to 2] |"
    assert not any("png" in line for line in lines)
