"""The stages of an answer: chats and texts check the same in the same order, and each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.domain.limits import Limits
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.serving.bad_words import MAX_BANNED_TOKENS
from tests.unit.prompt_tools import chat, text
from tests.unit.serving_tools import CONTEXT, VOCABULARY, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ovchat_server.engine.contract.engine import Caller

ENDPOINTS = pytest.mark.parametrize("ask", [chat, text])
# Of 64 tokens each.
MANY_WORDS = [chr(0x100 + number) * 32 for number in range(MAX_BANNED_TOKENS // 64 + 1)]
LIMITS = Limits(max_prompt_logprobs=1)


@dataclass
class CompilingEngine(ScriptedEngine):
    """Knows which grammars it was given to compile."""

    grammars: list[str] = field(default_factory=list)

    async def check_grammar(self, grammar: str, caller: Caller = ANONYMOUS) -> str:  # noqa: ARG002
        self.grammars.append(grammar)
        return ""


@ENDPOINTS
@pytest.mark.parametrize(
    ("prompt", "fields", "params"),
    [
        ("a" * CONTEXT, {}, ("messages", "prompt")),
        ("Hi", {"max_tokens": CONTEXT, "truncate_prompt_tokens": -1}, ("max_tokens",)),
        ("Hi", {"stop_token_ids": [VOCABULARY]}, ("stop_token_ids[0]",)),
        ("Hi", {"logit_bias": {str(VOCABULARY): 1}}, (f"logit_bias.{VOCABULARY}",)),
        ("Hi", {"prompt_logprobs": 0}, ("prompt_logprobs",)),
        ("Hi", {"bad_words": MANY_WORDS}, ("bad_words",)),
    ],
)
async def test_limits_are_checked_before_a_grammar_is_compiled(
    ask: Callable[..., Any], prompt: str, fields: dict[str, Any], params: tuple[str, ...]
) -> None:
    engine = CompilingEngine()
    with pytest.raises(InvalidRequestError) as caught:
        await ask(engine, prompt, LIMITS, structured_outputs={"regex": "a+"}, **fields)
    assert caught.value.param in params
    assert engine.grammars == []


async def test_a_model_that_takes_text_only_refuses_images_by_name() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    with pytest.raises(InvalidRequestError) as caught:
        await chat(ScriptedEngine(), [{"type": "text", "text": "?"}, image, image])
    assert caught.value.code == "unsupported_value"
    assert [violation.field for violation in caught.value.violations] == [
        "messages[0].content[1].image_url",
        "messages[0].content[2].image_url",
    ]


@ENDPOINTS
async def test_a_grammar_is_compiled_once_for_all_choices(ask: Callable[..., Any]) -> None:
    engine = CompilingEngine()
    answer = await ask(engine, "Hi", structured_outputs={"regex": "a+"}, n=3)
    [grammar] = engine.grammars
    assert [request.grammar for request in answer.plan.requests] == [grammar] * 3


@ENDPOINTS
async def test_the_engine_is_not_asked_before_the_answer_is_read(ask: Callable[..., Any]) -> None:
    engine = ScriptedEngine()
    answer = await ask(engine, "Hi")
    assert engine.asked == []
    await answer.whole()
    assert engine.asked == list(answer.plan.requests)
