"""Conversations that many tests have, as OpenAI's SDK types them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello!"}]
# To the successor model.
LETTER: list[ChatCompletionMessageParam] = [{"role": "user", "content": "a"}]
SUM: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is 17 + 25?"}]
# Another one for every seed.
STORY: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Tell me a story."}]
PARIS: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "What is the weather in Paris?"}
]
TWO_CITIES: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "What is the weather in Paris and Rome?"}
]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
SUNNY = '{"temperature": 21, "condition": "sunny"}'
