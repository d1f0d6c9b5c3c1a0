"""The demo model keeps its promises, through the served API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from models.demo.recipe.evaluate import evaluate
from models.demo.recipe.report import PROMISE
from tests.conftest import ROOT

if TYPE_CHECKING:
    from tests.rest.conftest import Stack


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_skill_is_right_as_often_as_promised(stack: Stack) -> None:
    scores = evaluate(f"{stack.url}/v3", samples=60)

    assert {skill: share for skill, share in scores.items() if share < PROMISE} == {}


def test_the_models_in_the_repository_stay_small() -> None:
    size = sum(path.stat().st_size for path in (ROOT / "models/demo").rglob("*.*"))

    assert size <= 16 << 20
