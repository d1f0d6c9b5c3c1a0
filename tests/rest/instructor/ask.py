"""Talks to a server with instructor and prints what it saw as JSON.

Runs in an environment of its own. The server is the one that OPENAI_BASE_URL names.
"""  # noqa: INP001 - a script

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from typing import Any

import instructor
import openai
from instructor import Mode
from pydantic import BaseModel, Field, create_model, field_validator

BOTH_TOOLS = "What is the weather in Paris and the time in Rome?"
# Left to itself, the demo model says that it does not know her.
WHO = "Who is Anna? Anna is 31."
# For what does not enforce a schema.
AS_JSON = "Extract name and age as JSON: Anna is 31."
QUESTIONS = {
    Mode.TOOLS: WHO,
    Mode.TOOLS_STRICT: WHO,
    Mode.JSON_SCHEMA: WHO,
    Mode.JSON: AS_JSON,
    Mode.MD_JSON: AS_JSON,
}


class Person(BaseModel):
    """A person."""

    name: str
    age: int


# A tool has its model's name, and the demo model knows tools as they are mostly called.
GetWeather = create_model("get_weather", __doc__="Get the current weather in a city.", city=str)
GetTime = create_model("get_time", __doc__="Get the local time in a city.", city=str)


def asked(question: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    limits = {"temperature": 0, "max_tokens": 200, "max_retries": 0}
    return {"model": "demo", "messages": messages, **limits, **fields}


def client(mode: Mode) -> instructor.Instructor:
    return instructor.from_openai(openai.OpenAI(max_retries=0), mode=mode)


def whole(mode: Mode) -> Any:
    return client(mode).create(**asked(QUESTIONS[mode], response_model=Person)).model_dump()


async def later(mode: Mode) -> Any:
    async with openai.AsyncOpenAI(max_retries=0) as sdk:
        asking = instructor.from_openai(sdk, mode=mode)
        return (await asking.create(**asked(QUESTIONS[mode], response_model=Person))).model_dump()


def growing(mode: Mode) -> list[Any]:
    parts = client(mode).create_partial(**asked(QUESTIONS[mode], response_model=Person))
    return [part.model_dump() for part in parts]


def parallel() -> list[Any]:
    calls = client(Mode.PARALLEL_TOOLS).create(
        **asked(BOTH_TOOLS, response_model=Iterable[GetWeather | GetTime])
    )
    return [[type(call).__name__, call.city] for call in calls]


def corrected(mode: Mode) -> dict[str, Any]:
    """What comes after an answer that is not accepted, and the messages that asked for it."""
    refused: list[int] = []

    class Checked(BaseModel):
        """A person."""

        # Bounded, as the demo model is lost for an answer to a correction.
        name: str = Field(max_length=20)
        age: int = Field(ge=0, le=120)

        @field_validator("age")
        @classmethod
        def refuse_the_first(cls, age: int) -> int:
            if not refused:
                refused.append(age)
                raise ValueError("look again")
            return age

    requests: list[Any] = []
    asking = client(mode)
    asking.on(
        "completion:kwargs",
        # As they are now: the list grows with each try.
        lambda **fields: requests.append(json.loads(json.dumps(fields["messages"]))),
    )
    answer = asking.create(**asked(WHO, response_model=Checked, max_retries=2))
    return {"answer": answer.model_dump(), "refused": refused, "requests": requests}


json.dump(
    {
        "whole": {mode.name: whole(mode) for mode in QUESTIONS},
        "later": {mode.name: asyncio.run(later(mode)) for mode in QUESTIONS},
        "growing": {mode.name: growing(mode) for mode in QUESTIONS},
        "parallel": parallel(),
        "corrected": {mode.name: corrected(mode) for mode in (Mode.TOOLS, Mode.JSON_SCHEMA)},
    },
    sys.stdout,
)
