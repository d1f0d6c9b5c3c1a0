"""Somebody guesses a prompt of another, by how long the same prompt takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import openai
import pytest

from tests.rest.conftest import running_stack

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.settings import ModelSettings

pytestmark = pytest.mark.slow
TRIALS = 15
KEYS = {"victim": "sk-victim", "attacker": "sk-attacker"}


@pytest.mark.parametrize("keys", [False, True])
def test_a_prompt_of_another_key_is_not_recognised(
    tmp_path: Path, demo: ModelSettings, *, keys: bool
) -> None:
    file = tmp_path / "keys"
    file.write_text("".join(f"{name} {key}\n" for name, key in KEYS.items()))
    options = ["--api-key-file", str(file)] if keys else []
    recognised = cached = 0
    with running_stack(tmp_path, demo, options=options) as stack:
        victim, attacker = (
            openai.OpenAI(base_url=f"{stack.url}/v1", api_key=key, max_retries=0)
            for key in KEYS.values()
        )

        def ask(sdk: openai.OpenAI, text: str) -> tuple[float, int]:
            began = time.monotonic()
            answer = sdk.chat.completions.create(
                model="demo", messages=[{"role": "user", "content": text}], max_tokens=1
            )
            details = answer.usage.prompt_tokens_details  # type: ignore[union-attr]
            return time.monotonic() - began, details.cached_tokens or 0  # type: ignore[union-attr]

        for trial in range(TRIALS):
            right, wrong = (f"My number {trial} is {word}. " * 60 for word in ("seven", "nine"))
            ask(victim, right)
            (with_right, found), (with_wrong, _) = ask(attacker, right), ask(attacker, wrong)
            recognised += with_right < 0.7 * with_wrong
            cached += found > 0
    print(f"keys: {keys}; recognised by time: {recognised} of {TRIALS}, by usage: {cached}")
    assert cached == (0 if keys else TRIALS)
