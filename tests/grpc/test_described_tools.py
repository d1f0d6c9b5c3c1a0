"""The demo model with a chat template that knows no tools: it is told of them, and calls them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat.v1 import chat_pb2, message_pb2, model_service_pb2, tool_pb2
from ovchat_server.app import Server
from tests.conftest import ROOT
from tests.grpc.conftest import Client, running
from tests.grpc.requests import WEATHER, ask
from tests.json_schemas import validate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ovchat_server.settings import ModelSettings, Settings

REQUIRED = tool_pb2.ToolChoice(mode=tool_pb2.TOOL_CHOICE_MODE_REQUIRED)
NAMED = tool_pb2.ToolChoice(function_name="get_weather")
PING = tool_pb2.Tool(function=tool_pb2.FunctionDefinition(name="ping"))
FORCED = {"required": ([WEATHER], REQUIRED), "named": ([PING, WEATHER], NAMED)}


@pytest.fixture(scope="module")
async def client(
    make_settings: Callable[..., Settings],
    demo: ModelSettings,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Client]:
    path = tmp_path_factory.mktemp("models") / "demo"
    shutil.copytree(demo.path, path)
    shutil.copy(ROOT / "tests/data/templates/chatml.jinja", path / "chat_template.jinja")
    async with running(Server(make_settings(msgspec.structs.replace(demo, path=path)))) as client:
        yield client


async def choice(client: Client, said: str, **fields: Any) -> chat_pb2.Choice:
    request = ask(said, temperature=0, max_tokens=100, **fields)
    [choice] = (await client.chat.CreateChatCompletion(request)).choices
    return choice


@pytest.mark.parametrize("how", FORCED)
async def test_a_call_can_be_forced(client: Client, how: str) -> None:
    tools, wanted = FORCED[how]
    one = {"parallel_tool_calls": False} if how == "required" else {}
    found = await choice(client, "Hello", tools=tools, tool_choice=wanted, **one)
    [call] = found.message.tool_calls
    assert call.function.name == "get_weather"
    validate(json.loads(call.function.arguments), json.loads(WEATHER.function.parameters))
    assert found.finish_reason == chat_pb2.FINISH_REASON_TOOL_CALLS


async def test_a_call_is_made_of_its_own_accord_and_its_result_is_told(client: Client) -> None:
    question = "What is the weather in Paris?"
    asked = (await choice(client, question, tools=[WEATHER])).message
    [call] = asked.tool_calls
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')
    request = ask(question, tools=[WEATHER], temperature=0, max_tokens=100)
    result = message_pb2.Message(
        role=message_pb2.ROLE_TOOL,
        content=[message_pb2.ContentPart(text='{"temperature": 21}')],
        tool_call_id=call.id,
    )
    request.messages.extend([asked, result])
    [told] = (await client.chat.CreateChatCompletion(request)).choices
    assert not told.message.tool_calls
    assert "21" in told.message.content[0].text


async def test_the_model_says_that_it_calls_tools(client: Client) -> None:
    capabilities = (await client.model("demo")).capabilities
    assert model_service_pb2.CAPABILITY_TOOLS in capabilities
