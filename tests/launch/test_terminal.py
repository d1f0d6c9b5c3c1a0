"""What `ovchat up` writes on a terminal is for people."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from typing import TYPE_CHECKING

import httpx

from tests.conftest import model_settings, model_table
from tests.ports import unused_port
from tests.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

BODY = {"model": "successor", "messages": [{"role": "user", "content": "a"}], "max_tokens": 5}


async def test_a_terminal_shows_sentences_and_no_json(tmp_path: Path) -> None:
    config = tmp_path / "ovchat.toml"
    config.write_text(model_table(model_settings("successor")))
    ports = [unused_port() for _ in range(2)]
    screen = Screen()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ovchat_server", "up", "--config", str(config)),
        *(f"--rest-port={ports[0]}", f"--grpc-port={ports[1]}", "--metrics-port=0"),
        stdout=screen.slave,
        stderr=screen.slave,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"},
    )
    os.close(screen.slave)
    try:
        await screen.shows("Ctrl-C ends it")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports[0]}", timeout=None) as http:
            await http.post("/v3/chat/completions", json=BODY)
            await http.get("/nope", headers={"x-request-id": "r1"})
        time = r"(?m)^\d\d:\d\d:\d\d "
        await screen.shows(
            time
            + r"POST /v3/chat/completions 200 successor 1\+5 tokens ttft \d\.\d\d s, \d+\.\d\d s"
        )
        await screen.shows(time + r"GET /nope 404 direct_response \d+ ms request_id=r1")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await screen.ended.wait()
    assert not re.search(r"(?m)^\s*\{", screen.text)
