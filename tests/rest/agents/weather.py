"""The agent that every client is: its tools, what it is asked, and what must come of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai.types.chat import ChatCompletionToolParam

PARIS = "What is the weather in Paris?"
BOTH_CITIES = "What is the weather in Paris and Rome?"
BOTH_TOOLS = "What is the weather in Paris and the time in Rome?"

WEATHER = {
    "Paris": {"temperature": 21, "condition": "sunny"},
    "Rome": {"temperature": 24, "condition": "cloudy"},
}
CLOCK = {"Paris": {"time": "12:30"}, "Rome": {"time": "18:05"}}
# As the demo model was trained to answer from such results.
SAID = {
    "get_weather": "For {city}, the temperature is {temperature} and the condition is {condition}.",
    "get_time": "For {city}, the time is {time}.",
}
RESULTS: dict[str, dict[str, dict[str, Any]]] = {"get_weather": WEATHER, "get_time": CLOCK}
DESCRIPTIONS = {
    "get_weather": "Get the current weather in a city.",
    "get_time": "Get the local time in a city.",
}
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
    for name, description in DESCRIPTIONS.items()
]


def run(name: str, arguments: str) -> str:
    """A call's result, as the agent tells it to the model."""
    return json.dumps(RESULTS[name][json.loads(arguments)["city"]])


def sentences(*calls: tuple[str, str]) -> str:
    """The answer to the results of some calls, each a function's name and a city."""
    return " ".join(SAID[name].format(city=city, **RESULTS[name][city]) for name, city in calls)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a client understood it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model."""

    finish: str
    content: str | None
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A way to ask, and the calls that must be made; `said` where there are none."""

    name: str
    question: str
    calls: tuple[tuple[str, str], ...]
    fields: dict[str, Any] = field(default_factory=dict)
    said: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def forced(self) -> bool:
        """Whether a call must be made."""
        return self.fields.get("tool_choice", "auto") not in ("auto", "none")

    @property
    def answer(self) -> str:
        """What the model says in the end."""
        return self.said or sentences(*self.calls)

    def check(self, turns: Sequence[Turn]) -> None:
        """Fail unless these turns are the calls and the answer from their results."""
        *asking, last = turns
        assert last == Turn("stop", self.answer, ())
        assert len(asking) == (1 if self.calls else 0)
        for turn in asking:
            assert (turn.finish, turn.content) == ("tool_calls", None)
            assert [(call.name, json.loads(call.arguments)) for call in turn.calls] == [
                (name, {"city": city}) for name, city in self.calls
            ]
            assert len({call.id for call in turn.calls if call.id}) == len(turn.calls)


def _named(name: str) -> dict[str, Any]:
    return {"tool_choice": {"type": "function", "function": {"name": name}}}


REQUIRED = {"tool_choice": "required"}
ONE = {"parallel_tool_calls": False}
IN_PARIS = ("get_weather", "Paris")
IN_ROME = ("get_weather", "Rome")
CASES = [
    Case("auto", PARIS, (IN_PARIS,)),
    Case("auto, two cities", BOTH_CITIES, (IN_PARIS, IN_ROME), {"tool_choice": "auto"}),
    Case("auto, two tools", BOTH_TOOLS, (IN_PARIS, ("get_time", "Rome"))),
    Case("auto, one at a time", BOTH_CITIES, (IN_PARIS,), ONE),
    Case("auto, none needed", "Hello!", (), said="Hello! How can I help you?"),
    Case("none", "Hello!", (), {"tool_choice": "none"}, said="Hello! How can I help you?"),
    Case("required", PARIS, (IN_PARIS,), REQUIRED),
    Case("required, two cities", BOTH_CITIES, (IN_PARIS, IN_ROME), REQUIRED),
    Case("required, one at a time", BOTH_CITIES, (IN_PARIS,), REQUIRED | ONE),
    Case("named", BOTH_CITIES, (IN_PARIS,), _named("get_weather")),
    Case("named against the question", PARIS, (("get_time", "Paris"),), _named("get_time")),
]
