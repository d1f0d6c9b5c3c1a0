"""`ovchat tls dev-cert`."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from cryptography import x509

from ovchat_server.cli import main
from ovchat_server.tls.files import TlsFiles
from ovchat_server.tls.names import client_name, host_names

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("ca.pem", "cert.pem", "key.pem", "client-cert.pem", "client-key.pem")


def made(folder: Path, *options: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["tls", "dev-cert", "--out", str(folder), *options])
    assert result.exit_code == code, result.output
    return result.output


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_it_writes_what_a_server_and_a_client_need(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    text = made(folder, "--host", "chat.example.com", "--host", "10.0.0.1", "--host", "localhost")
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    for name in FILES:
        assert f"{folder}/{name}" in text
        mode = (folder / name).stat().st_mode & 0o777
        assert mode & 0o077 == (0 if "key" in name else 0o044)
    assert TlsFiles(*(folder / name for name in ("cert.pem", "key.pem", "ca.pem"))).warnings() == []
    hosts = ["localhost", "chat.example.com", "127.0.0.1", "::1", "10.0.0.1"]
    assert host_names(certificate(folder / "cert.pem")) == hosts
    assert client_name((folder / "client-cert.pem").read_bytes()) == "client"


@pytest.mark.parametrize(("trusts", "accepted"), [("ca.pem", True), ("client-cert.pem", False)])
def test_strict_clients_accept_it(trusts: str, tmp_path: Path, *, accepted: bool) -> None:
    made(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    client = ssl.create_default_context(cafile=tmp_path / trusts)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(received, sent, server_hostname="localhost")
    there = server.wrap_bio(sent, received, server_side=True)

    def shake() -> None:
        for side in (here, there, here):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue

    if accepted:
        shake()
        assert here.getpeercert()
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            shake()


def test_nothing_is_replaced_unless_it_is_told_to(tmp_path: Path) -> None:
    made(tmp_path)
    before = (tmp_path / "key.pem").read_bytes()
    (tmp_path / "ca.pem").unlink()
    told = made(tmp_path, code=1)
    assert told.startswith(f"Error: {tmp_path}/cert.pem, ")
    assert told.endswith("there already; --force replaces them\n")
    assert not (tmp_path / "ca.pem").exists()
    made(tmp_path, "--force")
    assert (tmp_path / "key.pem").read_bytes() != before


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = made(tmp_path / "file" / "x", code=1)
    assert told == f"Error: {tmp_path}/file/x cannot be written to: Not a directory\n"
