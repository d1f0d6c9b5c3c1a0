"""How long a model may reason: what the engine is asked for, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError
from ovchat_server.engine.contract.engine import ANONYMOUS
from ovchat_server.engine.contract.generation import ReasoningBudget
from ovchat_server.engine.contract.messages import Capabilities
from tests.unit.serving_tools import READY, TOKENIZER, ScriptedEngine, completions, served

if TYPE_CHECKING:
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationRequest

PLAIN = "{{ messages[-1].content }}"
# It reasons by itself, or where the prompt ends inside the reasoning; or it is told not to.
OWN = PLAIN + "{# <think> #}"
OPENED = PLAIN + "<think>\n"
CLOSED = PLAIN + "<think>\n\n</think>\n\n"
HARMONY = PLAIN + "{# <|channel|> <|message|> #}"
CHANNEL = "<|channel|>analysis<|message|>"
FORM: dict[str, Any] = {"structured_outputs": {"regex": "[0-9]"}, "max_tokens": 40}
ASKED: dict[str, Any] = {**FORM, "reasoning_effort": "low"}


class Permissive(ScriptedEngine):
    """Can follow any grammar."""

    async def check_grammar(self, grammar: str, caller: Caller = ANONYMOUS) -> str:  # noqa: ARG002
        return ""


async def asked(template: str, *, sees: bool = True, **fields: Any) -> list[GenerationRequest]:
    """What the engine is asked for by a chat."""
    status = dataclasses.replace(READY, capabilities=Capabilities(sees_logits=sees))
    model = served(Permissive(status=status), template=template)
    messages = [{"role": "user", "content": "Hi"}]
    request = read_chat_request({"model": "demo", "messages": messages, **fields})
    return list((await completions(model).answer(request)).plan.requests)


def think(tokens: int, opening: str = "<think>") -> ReasoningBudget:
    return ReasoningBudget(tokens, opening, tuple(TOKENIZER.encode("\n</think>")))


@pytest.mark.parametrize(
    ("template", "budget", "fields", "expected"),
    [
        (OWN, 9, {}, think(9)),
        (OPENED, 0, {}, think(0, "")),
        # It may reason nevertheless.
        (CLOSED, 9, {}, think(9)),
        (OWN, None, {}, None),
        (PLAIN, 9, {}, None),
        # A form bounds it, too.
        (OWN, None, ASKED, think(20)),
        (OWN, 9, ASKED, think(9)),
        (OWN, 30, ASKED, think(20)),
        # Here the form comes at once.
        (OWN, 9, FORM, None),
        (
            HARMONY,
            9,
            {},
            ReasoningBudget(
                9,
                CHANNEL,
                tuple(TOKENIZER.encode("<|end|><|start|>assistant")),
                tuple(TOKENIZER.encode("<|channel|>a")),
            ),
        ),
    ],
)
async def test_all_choices_have_the_smallest_bound(
    template: str, budget: int | None, fields: dict[str, Any], expected: ReasoningBudget | None
) -> None:
    requests = await asked(template, thinking_token_budget=budget, n=2, **fields)
    assert [request.sampling.reasoning for request in requests] == [expected] * 2


async def test_a_device_that_shows_no_logits_refuses_it_where_the_model_reasons() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await asked(OWN, sees=False, thinking_token_budget=9)
    [violation] = caught.value.violations
    assert (violation.field, violation.code) == ("thinking_token_budget", "unsupported_parameter")
    for template, budget in ((OWN, -1), (PLAIN, 9)):
        [request] = await asked(template, sees=False, thinking_token_budget=budget)
        assert request.sampling.reasoning is None
