"""Talks to a server with Strands' agents and prints their answers as JSON.

Runs in an environment of its own. The server is the one that OPENAI_BASE_URL names.
"""  # noqa: INP001 - a script

from __future__ import annotations

import json
import os
import sys
from typing import Any

from strands import Agent, tool
from strands.models.openai import OpenAIModel

CAPITAL = "What is the capital of France?"


@tool
def get_weather(city: str) -> dict[str, Any]:
    """Get the current weather in a city.

    Args:
        city: The city.
    """
    return {"temperature": {"Paris": 21, "Rome": 27}[city], "condition": "sunny"}


def agent(**fields: Any) -> Agent:
    server = {"base_url": os.environ["OPENAI_BASE_URL"], "api_key": "unused", "max_retries": 0}
    model = OpenAIModel(client_args=server, model_id="demo", params={"temperature": 0})
    return Agent(model=model, callback_handler=None, **fields)


def turns() -> list[str]:
    """Of one agent without tools, which sends `tools: []` each time."""
    talker = agent()
    return [str(talker(question)).strip() for question in (CAPITAL, "Count to 3")]


json.dump(
    {
        "turns": turns(),
        "no tools": str(agent(tools=[])(CAPITAL)).strip(),
        "a tool": str(agent(tools=[get_weather])("What is the weather in Rome?")).strip(),
    },
    sys.stdout,
)
