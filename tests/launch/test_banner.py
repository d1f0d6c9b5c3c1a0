"""The banner's examples: each works as it is typed."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from ovchat_server.launch.banner import banner
from ovchat_server.launch.doors import ClientFiles, Doors
from ovchat_server.tls.dev_certificates import write_dev_certificates
from ovchat_server.tls.files import CurrentTls, TlsFiles
from tests.certificates import Authority
from tests.conftest import ROOT
from tests.launch.stack import running

KEY = "$OVCHAT_API_KEY"
KEYS = "\n# of the first team\n   first-key \nsecond-key\n"


def blocks(text: str) -> list[str]:
    """What stands below a heading."""
    return re.findall(r"(?m)^\w.*:\n\n((?:.+\n)+)", text)


async def typed(script: str, directory: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=directory,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.parametrize(("keys", "mtls"), [(False, False), (True, False), (True, True)])
async def test_examples_work_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keys: bool, mtls: bool
) -> None:
    # Instead of the model that the other tests have.
    options = ["--model", f"successor={ROOT / 'models/demo'}"]
    options += ["--model", f"demo-vision={ROOT / 'models/demo-vision'}"]
    file = tmp_path / "the team's keys" if keys else None
    if file:
        file.write_text(KEYS)
        options += ["--api-key-file", str(file)]
    tls = None
    if mtls:
        write_dev_certificates(tmp_path / "tls", [], force=False)
        files = TlsFiles(*(tmp_path / f"tls/{name}.pem" for name in ("cert", "key", "ca")))
        options += [f"--tls-cert={files.certificate}", f"--tls-key={files.key}"]
        options += [f"--tls-client-ca={files.client_ca}"]
        tls = ClientFiles.of(files)
    async with running(tmp_path, *options) as stack:
        *key, curl, image, sdk, grpc = blocks(stack.printed)
        assert len(key) == keys
        assert "first-key" not in stack.printed
        # What is shown where there is no buf.
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("ovchat_server.launch.banner._program", lambda _: None)
        doors = Doors("127.0.0.1", stack.rest_port, stack.grpc_port, tls)
        *_, typed_call = blocks(banner(doors, models={"successor": False}, key_file=file))
        for script in (curl, f"{sys.executable} - <<'END'\n{sdk}\nEND", grpc, typed_call):
            assert "Paris" in await typed("".join([*key, script]), tmp_path)
        assert "A red square." in await typed("".join([*key, image]), tmp_path)


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (["127.0.0.1"], "127.0.0.1"),
        (["localhost", "127.0.0.1"], "127.0.0.1"),
        (["chat.example.com"], "chat.example.com"),
        (["*.example.com"], "any.example.com"),
        ([], "127.0.0.1"),
    ],
)
def test_with_tls_clients_call_a_name_of_the_certificate(
    names: list[str], host: str, tmp_path: Path
) -> None:
    authority = Authority.new(tmp_path)
    files = TlsFiles(*authority.files("server", *names))
    doors = Doors.of("127.0.0.1", (1, 2), CurrentTls(files, "Envoy"))
    assert doors.rest == f"https://{host}:1"
    assert doors.grpc == f"{host}:2"
    # Nothing else is known that a client could trust.
    assert doors.flags == f"--cacert {files.certificate} "


@pytest.mark.parametrize("where", ["PATH", "beside Python", "in the folder", "nowhere"])
def test_buf_is_named_as_it_is_found(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    if where != "nowhere":
        (tmp_path / "bin/buf").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin") if where == "PATH" else "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.chdir(tmp_path if where == "in the folder" else Path(__file__).parent)
    text = banner(Doors("::1", 1, 2), models={"demo": False})
    command = {
        "PATH": "buf curl",
        "beside Python": f"{tmp_path}/bin/buf curl",
        "in the folder": "bin/buf curl",
        "nowhere": f"{tmp_path}/bin/python - <<'END'",
    }[where]
    assert f"\n{command}" in text
    assert "image" not in text
    assert ("buf curl" in text) == (where != "nowhere")
    assert "[::1]:2" in text
    assert "http://[::1]:1/v3" in text


def test_where_all_models_run_elsewhere_they_are_to_be_asked_for() -> None:
    text = banner(Doors("127.0.0.1", 1, 2), models={}, key_file=Path("keys"))
    assert f'curl http://127.0.0.1:1/v3/models -H "authorization: Bearer {KEY}"' in text
    assert "demo" not in text
