"""Beside a line that is full no work is done for those who will be refused."""

from __future__ import annotations

import pytest

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.errors import InvalidRequestError, OverloadedError
from ovchat_server.domain.text_request import read_text_request
from tests.unit.serving_tools import CONTEXT, ScriptedEngine, completions, served


async def chat(engine: ScriptedEngine) -> None:
    """Ask with a template that can render nothing: whoever tries is told so."""
    model = served(engine, template="{{ raise_exception('tried') }}")
    messages = [{"role": "user", "content": "Hello"}]
    request = read_chat_request({"model": "demo", "messages": messages})
    await completions(model).answer(request)


async def go_on(engine: ScriptedEngine, **fields: object) -> None:
    """Ask with a prompt that is too long."""
    request = read_text_request({"model": "demo", "prompt": "a" * 2 * CONTEXT} | fields)
    await completions(served(engine)).answer(request)


@pytest.mark.parametrize("ask", [chat, go_on])
async def test_a_full_line_refuses_before_the_prompt_is_read(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(InvalidRequestError):
        await ask(ScriptedEngine())
    with pytest.raises(OverloadedError):
        await ask(ScriptedEngine(full=True))


async def test_what_generates_nothing_does_not_wait_in_line() -> None:
    with pytest.raises(InvalidRequestError):
        await go_on(ScriptedEngine(full=True), echo=True, max_tokens=0)
