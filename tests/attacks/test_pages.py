"""A page of another site in a browser of somebody who may call, and others on the same machine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.attacks.probing import chat
from tests.launch.stack import running

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

EVIL = {"origin": "https://evil.example"}
NOBODY = 65534
# Tries to end Envoy, on whatever it may listen on.
KILLER = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
for address in sys.argv[2:]:
    family = socket.AF_INET if address.isdigit() else socket.AF_UNIX
    with socket.socket(family) as admin:
        admin.settimeout(5)
        try:
            admin.connect(("127.0.0.1", int(address)) if address.isdigit() else address)
            admin.sendall(b"POST /quitquitquit HTTP/1.1\\r\\nhost: x\\r\\n")
            admin.sendall(b"content-length: 0\\r\\n\\r\\n")
            print(address, admin.recv(15).decode(errors="replace"))
        except OSError as error:
            print(address, type(error).__name__)
"""


def listening(pid: int) -> Sequence[str]:
    """Ports and paths of sockets that a process listens on."""
    inodes = {
        str(file.readlink()).removeprefix("socket:[").removesuffix("]")
        for file in Path(f"/proc/{pid}/fd").iterdir()
    }
    ports = [
        str(int(fields[1].rpartition(":")[2], 16))
        for fields in map(str.split, Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
        if fields[3] == "0A" and fields[9] in inodes
    ]
    unix = [
        fields[7]
        for fields in map(str.split, Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:])
        if len(fields) > 7 and fields[6] in inodes
    ]
    return [*dict.fromkeys(ports), *dict.fromkeys(unix)]


async def test_a_page_of_another_site_reads_nothing(tmp_path: Path) -> None:
    async with (
        running(tmp_path) as stack,
        httpx.AsyncClient(base_url=stack.url, timeout=60) as http,
    ):
        path = "/v3/chat/completions"
        asked = {"access-control-request-method": "POST"}
        answers = [
            await http.options(path, headers=EVIL | asked),
            await http.post(path, json=chat(), headers=EVIL),
            await http.get("/v3/models", headers=EVIL),
            await http.get("/nope", headers=EVIL),
        ]
        # Sent without being asked, so what it does counts, not what is read of it.
        blind = await http.post(path, content=b"{}", headers=EVIL)
    for answer in answers:
        found = [name for name in answer.headers if name.startswith("access-control-")]
        print(answer.request.method, answer.request.url.path, answer.status_code, found)
        assert not found
    assert blind.status_code == 415


async def test_another_user_of_the_machine_cannot_end_envoy(tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can become another user")
    async with running(tmp_path) as stack:
        envoy = await stack.one("envoy")
        where = [address for address in listening(envoy) if address != str(stack.rest_port)]
        assert where
        said = await attempt(NOBODY, *where)
        print(said)
        assert "200" not in said
        await stack.answers()
        assert stack.processes("envoy") == [envoy]
        stack.process.send_signal(signal.SIGTERM)
        assert await stack.ends() == 0
    assert not [address for address in where if address.startswith("/") and Path(address).exists()]


async def attempt(user: int, *addresses: str) -> str:
    command = [sys.executable, "-c", KILLER, str(user), *addresses]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode()
