"""Answers to which another model proposes are those that come without, whatever it proposes."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

import pytest

from ovchat_server.engine.contract.generation import GenerationRequest, Sampling
from ovchat_server.engine.contract.speculation import Speculation
from tests.conftest import ROOT
from tests.engine.conftest import Watched, collect_all, engine, request, spec
from tests.engine.test_control_in_batches import alone, same
from tests.engine.test_load_failures import failed
from tests.engine.test_speculation import (
    DEMO,
    QUESTIONS,
    asked_of_demo,
    drafting,
    question,
)
from tests.random_model import save_random_model
from tests.successor import successor_text

if TYPE_CHECKING:
    from pathlib import Path

DRAFTS = Speculation(8)


async def counts(watched: Watched, asked: list[GenerationRequest]) -> tuple[int, int]:
    """How many tokens were accepted and rejected, of those that were proposed."""
    accepted = rejected = 0
    with watched.engine.generate(asked) as generation:
        async for piece in generation:
            accepted, rejected = accepted + piece.accepted, rejected + piece.rejected
    return accepted, rejected


async def test_each_token_is_the_one_that_comes_without(tmp_path: Path) -> None:
    """Drafted by the model itself, and by one that knows nothing; alone, and beside others."""
    asked = asked_of_demo()
    drafted = [
        item if item.beam_search else dataclasses.replace(item, speculation=DRAFTS)
        for item in asked
    ]
    greedy = [
        GenerationRequest(question(text), 60, Sampling(), ignore_eos=True, speculation=DRAFTS)
        for text in QUESTIONS
    ]
    async with engine(**DEMO) as plain:
        expected = [await alone(plain, item) for item in asked]
    found = []
    for folder in (ROOT / "models/demo", save_random_model(tmp_path / "random", 1536)):
        async with engine(**DEMO, **drafting(folder)) as speculating:
            got = [await alone(speculating, item) for item in drafted]
            got += await speculating.together(*(alone(speculating, item) for item in drafted))
            found.append(await counts(speculating, greedy))
            sure = Speculation(8, 0, 0.99)
            asking = [dataclasses.replace(item, speculation=sure) for item in greedy]
            found.append(await counts(speculating, asking))
        for one, wanted in zip(got, expected * 2, strict=True):
            same(one, wanted)
    (accepted, rejected), of_sure, (by_chance, wrong), of_unsure = found
    assert accepted > 20 * rejected
    assert wrong > 20 * by_chance
    assert 0 < of_sure[0] < accepted
    assert of_unsure == (0, 0)


async def test_a_long_prompt_is_read_before_anything_is_proposed() -> None:
    prompt = successor_text("a", 3000)
    asked = request(prompt, 100, speculation=DRAFTS)
    async with engine(kv_blocks=256, **drafting("models/successor")) as watched:
        accepted, rejected = await counts(watched, [asked])
        [answer] = await collect_all(watched.engine.generate([asked]))
    assert answer.text == successor_text(prompt, 100)
    assert accepted > 50 > rejected


@pytest.mark.parametrize("file", ["openvino_model.xml", "config.json"])
async def test_a_draft_model_that_cannot_be_loaded_is_told(tmp_path: Path, file: str) -> None:
    """One that is damaged, and one whose layers have a state."""
    folder = tmp_path / "draft"
    shutil.copytree(ROOT / "models/successor", folder)
    text = {"openvino_model.xml": "<net", "config.json": '{"layer_types": ["mamba"]}'}[file]
    (folder / file).write_text(text)
    reason = await failed(Watched(spec(speculation="draft", draft_model=str(folder))))
    advice = {
        "openvino_model.xml": "export or copy openvino_model.xml and .bin of draft_model anew",
        "config.json": f"choose another draft_model: {folder} has layers with a state",
    }
    assert reason.startswith(advice[file])
