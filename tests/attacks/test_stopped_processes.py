"""SIGSTOP of a server, or of Envoy: it neither ends nor answers."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.attacks.probing import chat, figures, status
from tests.launch.stack import gone, running, send

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TIMES = 20
# More than the default of --liveness-timeout and a start, on a slow machine.
PATIENCE = 90


@pytest.mark.parametrize(("kind", "replicas"), [("server", 1), ("server", 2), ("envoy", 1)])
async def test_the_service_is_back_by_itself(tmp_path: Path, kind: str, replicas: int) -> None:
    async with (
        running(tmp_path, f"--replicas={replicas}") as stack,
        httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE) as http,
    ):
        path = "/v3/chat/completions"
        alone = await figures(lambda: status(http, path, chat()), TIMES)
        pid = stack.processes(kind)[0]
        send(pid, signal.SIGSTOP)
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                beside = await figures(lambda: status(http, path, chat()), TIMES)
                await stack.answers()
        finally:
            send(pid, signal.SIGCONT)
        back = time.perf_counter() - begun
        print(f"{replicas} servers, {kind} stopped: alone {alone}; then {beside}; {back:.1f} s")
        await gone(pid)
        assert "answers nothing any more" in stack.log.read_text()
