"""Servers of others in the benchmark suite: their lives, what they are asked, what is told."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.measured import check
from benchmarks.plan import Ask, Lane, Plan, Trace
from benchmarks.references.running import ReferenceClient, running
from benchmarks.references.servers import Reference
from benchmarks.report import Result, write
from benchmarks.sse import head_of

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
import http.server, os, pathlib, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(200 if Handler.asked > 1 and self.path == "/ready" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
        time.sleep(0.05)
        self.close_connection = True
pathlib.Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
ASK = Ask(messages=(("user", "Hi"),), tokens=tuple(range(100)), max_tokens=5)


def reference(folder: Path, program: str = SERVER) -> Reference:
    return Reference(
        name="theirs",
        folder=folder,
        model=folder / "model",
        recipe="make theirs",
        ready="/ready",
        command=lambda port, _: (sys.executable, "-c", program, str(port)),
        environment=lambda _: {"PID_FILE": str(folder / "pid")},
    )


def trace(prompt_tokens: int, completion_tokens: int) -> Trace:
    return Trace(
        label="",
        start=0,
        end=1,
        arrivals={0: [1]},
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


async def test_it_answers_while_it_is_measured_and_has_ended_then(tmp_path: Path) -> None:
    async with running(reference(tmp_path)) as client:
        assert await client.get("/ready") > 0
        process = int((tmp_path / "pid").read_text())
        os.kill(process, 0)

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_it_has_ended_after_a_failure_of_the_suite(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with running(reference(tmp_path)):
            raise ZeroDivisionError

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_what_it_said_is_told_when_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"theirs does not start: .*no such model"):
        async with running(reference(tmp_path, "raise SystemExit('no such model')")):
            pass


async def test_it_may_close_a_connection_after_an_answer_without_saying_so(tmp_path: Path) -> None:
    async with running(reference(tmp_path)) as client:
        assert [await client.get("/ready") > 0 for _ in range(3)] == [True] * 3


def test_it_is_asked_for_as_many_tokens_by_either_name() -> None:
    request = ReferenceClient("bench", 1).request(ASK)

    first, _, rest = request.partition(b"\r\n")
    _, _, body = head_of(b"HTTP/1.1 200 OK\r\n" + rest)
    assert first == b"POST /v1/chat/completions HTTP/1.1"
    asked = json.loads(body)
    assert asked["max_tokens"] == asked["max_completion_tokens"] == 5
    assert (asked["temperature"], asked["ignore_eos"]) == (0, True)


def test_it_is_installed_where_its_version_and_its_model_are(tmp_path: Path) -> None:
    theirs = replace(reference(tmp_path), folder=tmp_path / "installed")
    assert theirs.version == ""

    theirs.folder.mkdir()
    (theirs.folder / "version").write_text("1.2\n")
    assert theirs.version == ""

    theirs.model.mkdir()
    assert theirs.version == "1.2"


@pytest.mark.parametrize(("read", "slack", "passes"), [
    (100, 0, True),
    (101, 0, False),
    (102, 0.02, True),
    (98, 0.02, True),
    (103, 0.02, False),
])  # fmt: skip
def test_prompts_may_differ_a_little_where_that_is_said(
    read: int, slack: float, *, passes: bool
) -> None:
    plan = Plan(((Lane((ASK,)),),))

    if passes:
        check(plan, [trace(read, 5)], slack)
    else:
        with pytest.raises(RuntimeError, match=f"{read} tokens in and 5 out"):
            check(plan, [trace(read, 5)], slack)


def test_answers_may_not() -> None:
    with pytest.raises(RuntimeError, match="100 tokens in and 4 out instead of 100 and 5"):
        check(Plan(((Lane((ASK,)),),)), [trace(100, 4)], slack=0.5)


def test_a_report_tells_ours_by_theirs_in_the_same_round(tmp_path: Path) -> None:
    rounds = [
        {
            "bare loop": {"tokens/s": 10.0},
            "REST": {"tokens/s": ours},
            "llama.cpp": {"tokens/s": theirs},
        }
        for ours, theirs in [(20.0, 10.0), (90.0, 30.0), (40.0, 10.0)]
    ]
    result = Result(
        model="demo",
        machine={"command": "", "llama.cpp": "1.2"},
        client={},
        workloads={"decode-1": "about"},
        rounds={"decode-1": rounds},
    )

    text = write(result, tmp_path, "demo").read_text()

    assert "| | REST / llama.cpp |" in text
    assert "| tokens/s | 3 [2 to 4] |" in text
    assert "OpenArc" not in text
