"""Speculation as callers and operators see it: what acts on which model, and what is told of it."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat.v1 import chat_pb2
from ovchat_server.domain.generation import StreamOptions
from ovchat_server.engine.contract.generation import (
    BeamSearch,
    GeneratedTokens,
    GenerationRequest,
    TokenFinish,
)
from ovchat_server.engine.contract.prompt import Prompt
from ovchat_server.engine.contract.speculation import NO_SPECULATION, Speculation
from ovchat_server.kinds.base import EngineHost, ModelSettingsError
from ovchat_server.kinds.text_generation import TextGeneration
from ovchat_server.metrics.server_metrics import ServerMetrics
from ovchat_server.rest.openai import objects
from ovchat_server.rpc import response
from ovchat_server.serving.prediction import with_prediction
from ovchat_server.settings import ModelSettings
from tests.conftest import ROOT
from tests.unit.readers import read_chat, read_text
from tests.unit.serving_tools import (
    CONTEXT,
    TOKENIZER,
    WORKERS,
    ScriptedEngine,
    completions,
    pipeline,
    served,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.domain.completion import Usage
    from ovchat_server.serving.answer import Answer

LOOKUP, DRAFTS = Speculation(5, 3), Speculation(5)
DEMO, SEES = ROOT / "models/demo", ROOT / "models/demo-vision"
HOST = EngineHost(processors=(), on_change=lambda: None, observers=ServerMetrics(1))
ALL = {"num_assistant_tokens": 4, "max_ngram_size": 2}
THRESHOLD = {"assistant_confidence_threshold": 0.5}
PREDICTION = {"prediction": {"type": "content", "content": "abc"}}


async def answer(
    fields: dict[str, Any], speculation: Speculation, engine: ScriptedEngine | None = None
) -> Answer:
    model = dataclasses.replace(served(engine), speculation=speculation)
    return await completions(model).answer(read_chat(**fields))


def two_choices() -> ScriptedEngine:
    tokens, last = tuple(TOKENIZER.encode("abc")), TokenFinish.LENGTH
    return ScriptedEngine(
        [
            GeneratedTokens(0, tokens, accepted=2, rejected=3),
            GeneratedTokens(1, tokens, last, accepted=1),
            GeneratedTokens(0, tokens, last, rejected=4),
        ]
    )


async def test_a_request_reaches_the_engine_with_what_is_proposed_for_it() -> None:
    engine = two_choices()
    await (await answer({**ALL, "n": 2}, LOOKUP, engine)).whole()
    assert [request.speculation for request in engine.asked] == [Speculation(4, 2)] * 2


@pytest.mark.parametrize(
    ("fields", "speculation", "ignored"),
    [
        (ALL, LOOKUP, []),
        (THRESHOLD, LOOKUP, [*THRESHOLD]),
        (PREDICTION, LOOKUP, []),
        (PREDICTION, NO_SPECULATION, [*PREDICTION]),
        (PREDICTION, DRAFTS, [*PREDICTION]),
        (ALL, DRAFTS, ["max_ngram_size"]),
        (THRESHOLD, DRAFTS, []),
        (ALL, NO_SPECULATION, [*ALL]),
        (THRESHOLD, NO_SPECULATION, [*THRESHOLD]),
        (dict.fromkeys(ALL | THRESHOLD | PREDICTION), NO_SPECULATION, []),
    ],
)
async def test_what_does_nothing_on_a_model_is_named(
    fields: dict[str, Any], speculation: Speculation, ignored: list[str]
) -> None:
    assert list((await answer(fields, speculation)).ignored) == ignored


async def test_a_prediction_reaches_the_engine_as_tokens() -> None:
    """As many as the context has at most, and none that the model does not know."""
    engine, [end] = two_choices(), TOKENIZER.encode("<|im_end|>")
    model = dataclasses.replace(served(engine, vocabulary_size=end), speculation=LOOKUP)
    content = "a<|im_end|>b" + "c" * CONTEXT
    predicted = {"prediction": {"type": "content", "content": content}}
    await (await completions(model).answer(read_chat(**predicted, n=2))).whole()
    tokens = TOKENIZER.encode("ab" + "c" * (CONTEXT - 3))
    assert [request.prediction for request in engine.asked] == [tuple(tokens)] * 2


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", {"speculation": LOOKUP}),
        (None, {"speculation": LOOKUP}),
        ("abc", {"speculation": Speculation(0, 3)}),
        ("abc", {"speculation": LOOKUP, "beam_search": BeamSearch(2, 1)}),
    ],
)
async def test_a_prediction_is_tokenized_only_where_it_may_be_proposed(
    text: str | None, asked: dict[str, Any]
) -> None:
    requests = [GenerationRequest(Prompt((1,)), 3, **asked)]
    assert await with_prediction(requests, served(), text, WORKERS) is requests


async def test_nothing_is_proposed_in_a_beam_search() -> None:
    engine = two_choices()
    await (await answer({**ALL, "n": 2, "best_of": 3}, LOOKUP, engine)).whole()
    assert [(request.beams, request.speculation) for request in engine.asked] == [
        (3, NO_SPECULATION)
    ]


async def test_usage_sums_what_was_proposed_for_all_choices() -> None:
    def counts(usage: Usage | None) -> tuple[int | None, int | None]:
        assert usage is not None
        return usage.accepted_tokens, usage.rejected_tokens

    whole = await (await answer({"n": 2}, LOOKUP, two_choices())).whole()
    streaming = (await answer({"n": 2}, LOOKUP, two_choices())).stream(
        StreamOptions(include_usage=True)
    )
    *_, last = [chunk async for chunk in streaming]
    without = await (await answer({"n": 2}, NO_SPECULATION, two_choices())).whole()

    assert counts(whole.usage) == counts(last.usage) == (3, 7)
    assert counts(without.usage) == (None, None)
    told: Any = objects.chat_chunk(last, StreamOptions(include_usage=True))["usage"]
    details = {"accepted_prediction_tokens": 3, "rejected_prediction_tokens": 7}
    assert told["completion_tokens_details"] == details
    typed = response.chat_chunk(last).usage.completion_tokens_details
    assert typed == chat_pb2.CompletionTokensDetails(**details)
    told = objects.chat_completion(without)["usage"]
    assert "completion_tokens_details" not in told
    assert not response.chat_completion(without).usage.HasField("completion_tokens_details")


async def test_a_text_completion_speculates_too() -> None:
    engine = ScriptedEngine([GeneratedTokens(0, (1,), TokenFinish.LENGTH)])
    model = dataclasses.replace(served(engine), speculation=LOOKUP)
    told = await completions(model).answer(read_text(**ALL, max_tokens=1))
    assert (await told.whole()).usage.accepted_tokens == 0
    assert [request.speculation for request in engine.asked] == [Speculation(4, 2)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"speculation": "lookup"}, Speculation(7, 2)),
        ({"speculation": "draft", "draft_model": DEMO}, Speculation(7, 0, 0.4)),
        ({}, NO_SPECULATION),
    ],
)
def test_a_models_options_say_what_it_proposes(
    options: dict[str, Any], expected: Speculation
) -> None:
    numbers = {
        "num_assistant_tokens": 7,
        "max_ngram_size": 2,
        "assistant_confidence_threshold": 0.4,
    }
    settings = ModelSettings(name="m", path=DEMO, **options, **numbers)
    model: Any = TextGeneration(pipeline()).build(settings, HOST).model
    assert model.speculation == expected


def test_a_vision_model_does_not_speculate() -> None:
    settings = ModelSettings(name="sees", path=SEES, speculation="lookup")
    with pytest.raises(ModelSettingsError, match="'sees': speculation is not supported by vision"):
        TextGeneration(pipeline()).build(settings, HOST)


def swapped(path: Path, one: int, other: int) -> tuple[Path, str, str]:
    """A copy of the demo model in which two tokens have each other's number, and their texts."""
    path.mkdir()
    for file in DEMO.iterdir():
        if file.is_file() and file.name != "tokenizer.json":
            (path / file.name).symlink_to(file)
    tokenizer = json.loads((DEMO / "tokenizer.json").read_bytes())
    numbers = tokenizer["model"]["vocab"]
    first, second = (text for number in (one, other) for text in numbers if numbers[text] == number)
    numbers[first], numbers[second] = other, one
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path, first, second


def refusal(draft: Path) -> str:
    """Why a model cannot draft for the demo model, without the beginning."""
    settings = ModelSettings(name="m", path=DEMO, speculation="draft", draft_model=draft)
    with pytest.raises(ModelSettingsError, match="the model 'm': draft_model") as refused:
        TextGeneration(pipeline()).build(settings, HOST)
    return str(refused.value).removeprefix("the model 'm': draft_model")


def test_a_draft_model_has_the_vocabulary_of_its_model(tmp_path: Path) -> None:
    path, first, second = swapped(tmp_path / "swapped", 500, 501)
    assert refusal(path) == (
        f" must have the same vocabulary, and {path} has not: "
        f"its token 500 is {second!r}, not {first!r}"
    )


def test_a_draft_model_is_a_model_of_text(tmp_path: Path) -> None:
    assert refusal(SEES) == " must not be a vision model"
    assert refusal(tmp_path / "no") == f": there is no folder {tmp_path / 'no'}"
