"""examples/rag.py finds the passage that answers, with a real embedding model."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ovchat_server.settings import ModelSettings
from tests.conftest import EXACT, ROOT
from tests.rest.conftest import running_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rest.conftest import Stack

MINILM = ROOT / ".cache/models/minilm"

pytestmark = pytest.mark.skipif(
    not MINILM.is_dir(), reason="`make setup` made no minilm: its package could not be had"
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings) -> Iterator[Stack]:
    minilm = ModelSettings(name="minilm", path=MINILM, properties=EXACT)
    with running_stack(tmp_path_factory.mktemp("stack"), minilm, demo) as stack:
        yield stack


def lines(stack: Stack, question: str) -> dict[str, list[str]]:
    """What the example prints, by the first word of each line."""
    environment = {"OPENAI_BASE_URL": f"{stack.url}/v1", "CHAT_MODEL": "demo"}
    result = subprocess.run(
        [sys.executable, "examples/rag.py", *question.split()],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stderr
    found: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        word, _, rest = line.partition("  ")
        found.setdefault(word, []).append(rest.strip())
    return found


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("", "pay 3 euros"),
        ("Who lights the lamps on the pier?", "by hand"),
        ("May I bring my dog?", "on a leash"),
    ],
)
def test_the_passage_that_answers_comes_first(stack: Stack, question: str, answer: str) -> None:
    found = lines(stack, question)

    assert answer in found["ranked"][0]
    assert [len(found[word]) for word in ("found", "ranked")] == [4, 2]
    scores = [float(line.split()[0]) for line in found["ranked"]]
    assert scores == sorted(scores, reverse=True)
    [said] = found["answer"]
    assert said
