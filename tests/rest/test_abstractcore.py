"""The examples of AbstractCore's server work on ours, adapted in host and model only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.conftest import ROOT
from tests.rest.conftest import running_stack
from tests.rest.examples import likeliest, run_commands, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.settings import ModelSettings
    from tests.rest.conftest import Stack

# Heading, language and code of each.
EXAMPLES = re.findall(
    r"^## ([^\n]*)\n\n```(bash|python)\n(.*?)^```",
    (ROOT / "tests/data/abstractcore_examples.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
HOSTS = ("https://api.yourdomain.com", "http://localhost:8000")
# The providers that the examples name, each with the model that they ask.
MODELS = {"openai": "gpt-4", "ollama": "llama3:latest", "anthropic": "claude-3-opus-20240229"}
PROVIDER = """
[[providers]]
name = "{name}"
kind = "openai"
base_url = "{url}/v1"
api_key_env = "HOUSE_KEY"
models = ["{model}"]
"""
HELLO = "Hello! How can I help you?\n"
# What each prints, among other things.
EXPECTED = {
    "Basic Chat Completion": ['"model":"openai/gpt-4"', "The capital of France is Paris."],
    "Streaming Response": ['"model":"ollama/llama3:latest"', '"content":"Once', "data: [DONE]"],
    "With Tool Calling": [r'"get_weather","arguments":"{\"location\": \"San Francisco\"}"'],
    "Provider-Specific Endpoint": ['"model":"ollama/llama3:latest"', HELLO.strip()],
    "Conversational AI / Chatbots": [f"{HELLO}Sorry, I do not know that"],
    "Streaming Chat Interface": ["Once upon a time"],
    "Tool/Function Calling": ["Model wants to call: get_weather({'location': 'Tokyo'})"],
    "Multi-Provider Support": [HELLO * 3],
    "List All Text Generation Models": [],
    "List Provider-Specific Models": [],
    "Manage Context Length": [HELLO],
    "Handle Tool Calls Properly": ["For Rome, the temperature is 21"],
    "Use Streaming for Better UX": ['"content":"Hello"', "data: [DONE]"],
}
LISTS = [heading for heading in EXPECTED if heading.startswith("List ")]
# Fragments are without what is before and after them, and have blanks.
ASK = """
import json, requests

HELLO = [{"role": "user", "content": "Hello!"}]
WEATHER = {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}

def ask(messages):
    body = {
        "model": "openai/gpt-4",
        "messages": messages,
        "tools": [{"type": "function", "function": WEATHER}],
    }
    response = requests.post("http://localhost:8000/v1/chat/completions", json=body)
    return response.json()["choices"][0]["message"]
"""
CALL = """
user_message = "What is the weather in Rome?"
messages = [{"role": "user", "content": user_message}]

def chat_with_tools(message):
    global tool_call
    messages.append(ask(messages))
    [tool_call] = messages[-1]["tool_calls"]

def execute_tool(tool_call):
    return {"temperature": 21}

def chat(messages):
    return ask(messages)["content"]
"""
TRIM = """
system = {"role": "system", "content": "You are a helpful assistant."}
print(ask(trim_history([system, *HELLO]))["content"])
"""
AROUND = {
    "Manage Context Length": (ASK, TRIM),
    "Handle Tool Calls Properly": (ASK + CALL, "print(final_response)"),
    "Use Streaming for Better UX": (ASK, "print(response.text)"),
}
BLANKS = {'"/v1/': '"http://localhost:8000/v1/', '"..."': '"openai/gpt-4"', "[...]": "HELLO"}


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings) -> Iterator[Stack]:
    """A server whose providers are all another one, which has the demo model by their names."""
    model = likeliest(demo, tmp_path_factory.mktemp("models") / "demo")
    models = [msgspec.structs.replace(model, name=name) for name in MODELS.values()]
    with (
        pytest.MonkeyPatch.context() as patch,
        running_stack(tmp_path_factory.mktemp("house"), *models) as house,
    ):
        patch.setenv("HOUSE_KEY", "unused")
        tables = "".join(
            PROVIDER.format(name=name, url=house.url, model=model) for name, model in MODELS.items()
        )
        with running_stack(tmp_path_factory.mktemp("router"), tables=tables) as router:
            yield router


def written_in(language: str) -> list[str]:
    return [heading for heading, written, _ in EXAMPLES if written == language]


def adapted(heading: str, router: Stack) -> str:
    [code] = [code for other, _, code in EXAMPLES if other == heading]
    if heading in AROUND:
        for blank, filled in BLANKS.items():
            code = code.replace(blank, filled)
        before, after = AROUND[heading]
        code = f"{before}\n{code}\n{after}"
    for host in HOSTS:
        code = code.replace(host, router.url)
    return code


def test_all_examples_are_there() -> None:
    assert [heading for heading, _, _ in EXAMPLES] == [*EXPECTED]


@pytest.mark.parametrize("heading", written_in("bash"))
def test_a_command_works_as_typed(router: Stack, heading: str) -> None:
    output = run_commands(adapted(heading, router))

    assert all(text in output for text in EXPECTED[heading]), output
    if heading in LISTS:
        # Those of one provider are three commands: were they not of one, each id came three times.
        ids = sorted(f"{provider}/{model}" for provider, model in MODELS.items())
        assert sorted(re.findall(r'"id":"(.*?)"', output)) == ids


@pytest.fixture(scope="module")
def python_outputs(router: Stack) -> dict[str, tuple[str, str]]:
    """What each Python example prints, and its traceback."""
    headings = written_in("python")
    ended = run_python([adapted(heading, router) for heading in headings])
    return dict(zip(headings, ended, strict=True))


@pytest.mark.parametrize("heading", written_in("python"))
def test_a_python_program_works_as_typed(
    python_outputs: dict[str, tuple[str, str]], heading: str
) -> None:
    output, error = python_outputs[heading]

    assert not error, error
    assert all(text in output for text in EXPECTED[heading]), output
