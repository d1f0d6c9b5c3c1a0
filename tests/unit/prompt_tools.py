"""An engine that tells how likely a prompt's tokens were, and answers asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ovchat_server.domain.chat_request import read_chat_request
from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.domain.text_request import read_text_request
from ovchat_server.engine.contract.generation import GeneratedTokens, PromptScore, TokenFinish
from tests.unit.serving_tools import TOKENIZER, ScriptedEngine, completions, served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.limits import Limits
    from ovchat_server.serving.answer import Answer

STOP, LENGTH = TokenFinish.STOP, TokenFinish.LENGTH


def token(text: str) -> int:
    """A token of one byte."""
    [number] = TOKENIZER.encode(text)
    return number


def scores(tokens: int, likeliest: str = "") -> tuple[PromptScore, ...]:
    """Of the tokens behind the first: -1, -2 and so on; 0.1 to 0.9 off for the `likeliest`."""
    tops = tuple((token(text), -place / 10) for place, text in enumerate(likeliest, 1))
    return tuple(PromptScore(-float(place), 100 + place, tops) for place in range(1, tokens))


def piece(  # noqa: PLR0913  all that an engine brings
    index: int,
    text: str,
    prompt: Sequence[PromptScore] = (),
    finish: TokenFinish | None = LENGTH,
    *,
    logprob: float = -0.5,
    likeliest: str = "",
) -> GeneratedTokens:
    """Tokens of a choice, and what is told with the first."""
    tokens = tuple(TOKENIZER.encode(text))
    tops = tuple((token(other), -0.25) for other in likeliest)
    return GeneratedTokens(
        index,
        tokens,
        finish,
        (logprob,) * len(tokens),
        (tops,) * len(tokens) if likeliest else (),
        tuple(prompt),
    )


async def chat(
    engine: ScriptedEngine, said: Any, limits: Limits = DEFAULT_LIMITS, **fields: Any
) -> Answer:
    """The answer to a message, which is the prompt as it stands."""
    messages = [{"role": "user", "content": said}]
    request = read_chat_request({"model": "demo", "messages": messages, **fields})
    return await completions(served(engine), limits).answer(request)


async def text(
    engine: ScriptedEngine, prompt: Any, limits: Limits = DEFAULT_LIMITS, **fields: Any
) -> Answer:
    """The answer to a text, or some."""
    request = read_text_request({"model": "demo", "prompt": prompt, **fields})
    return await completions(served(engine), limits).answer(request)
