"""--tls-cert, --tls-key and --tls-client-ca: what is told of them, and how they are followed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization

from ovchat_server.commands import ServerCommand
from ovchat_server.configuration import settings_from
from ovchat_server.options import arguments_of
from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.files import CurrentTls, TlsFiles
from tests.certificates import Authority
from tests.unit.test_options import CATCH, MODEL, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.new(tmp_path)


@pytest.fixture
def files(authority: Authority) -> TlsFiles:
    return TlsFiles(*authority.files("server", "localhost"), authority.file)


def said(*arguments: str, command: str = "up") -> str:
    """What is printed of a mistake."""
    made = ServerCommand(command, callback=lambda **options: settings_from(options))
    result = CliRunner().invoke(made, [*MODEL, *arguments])
    assert result.exit_code == 2
    return result.output.splitlines()[-1].removeprefix("Error: ")


def flags(files: TlsFiles) -> list[str]:
    given = ("--tls-cert", files.certificate), ("--tls-key", files.key)
    return [f"{flag}={path}" for flag, path in (*given, ("--tls-client-ca", files.client_ca))]


@pytest.mark.parametrize("source", ["flags", "environment", "file"])
def test_the_files_are_named_as_all_options_are(
    source: str, files: TlsFiles, tmp_path: Path
) -> None:
    assert run(*MODEL).tls is None
    paths = {"cert": files.certificate, "key": files.key, "client_ca": files.client_ca}
    config = tmp_path / "ovchat.toml"
    # Relative to it.
    lines = [f'tls_{key} = "{path.name}"' for key, path in paths.items() if path]
    config.write_text("\n".join(["[server]", *lines]))
    given: dict[str, Any] = {
        "flags": {"arguments": flags(files)},
        "environment": {"env": {f"OVCHAT_TLS_{key.upper()}": f"{it}" for key, it in paths.items()}},
        "file": {"arguments": ["--config", str(config)]},
    }[source]
    for command in ("up", "serve"):
        arguments = [*MODEL, *given.get("arguments", ())]
        assert run(*arguments, env=given.get("env"), command=command).tls == files


def test_a_server_of_ovchat_up_has_the_same_files(files: TlsFiles) -> None:
    run(*MODEL, *flags(files))
    arguments = [*arguments_of(CATCH["options"]), "--envoy-socket=/run/x"]
    settings = run(*arguments, command="serve")
    assert (settings.tls, settings.envoy_socket) == (files, "/run/x")


def test_one_without_the_other_is_refused_by_name(files: TlsFiles) -> None:
    certificate, key, client_ca = flags(files)
    assert said(certificate) == "--tls-cert needs --tls-key, too"
    assert said(key) == "--tls-key needs --tls-cert, too"
    assert said(client_ca) == "--tls-client-ca needs --tls-cert and --tls-key, too"
    assert said(client_ca, key) == "--tls-key needs --tls-cert, too"
    socket = said(certificate, key, "--grpc-socket=@x", command="serve")
    assert socket == "--tls-cert is for --grpc-port: --grpc-socket has no TLS"


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--tls-cert", b"", "holds no certificate in PEM"),
        ("--tls-cert", b"\x30\x82\x01", "holds no certificate in PEM"),
        ("--tls-key", b"-----BEGIN", "holds no private key in PEM"),
        ("--tls-client-ca", b"nothing", "holds no certificate in PEM"),
    ],
)
def test_a_file_that_is_not_pem_is_named(
    option: str, text: bytes, words: str, files: TlsFiles, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(text)
    assert said(*flags(files), f"{option}={tmp_path}/bad") == f"{option} {tmp_path}/bad {words}"


def test_files_that_cannot_be_used_are_named(
    files: TlsFiles, authority: Authority, tmp_path: Path
) -> None:
    assert said("--tls-cert=none").startswith('--tls-cert must be a file, got "none"')
    _, other = authority.files("server", "localhost")
    assert said(*flags(files), f"--tls-key={other}") == (
        f"--tls-key {other} is not the key of the first certificate in "
        f"--tls-cert {files.certificate}"
    )
    secret = tmp_path / "secret"
    key = serialization.load_pem_private_key(files.key.read_bytes(), None)
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"x"),
        )
    )
    told = said(*flags(files), f"--tls-key={secret}")
    assert told == f"--tls-key {secret} has a passphrase: give a key without one"
    with pytest.raises(TlsError, match=r"^--tls-key .* cannot be read: No such file"):
        TlsFiles(files.certificate, tmp_path / "gone").read()


def test_what_is_a_mistake_most_likely_is_warned_of(files: TlsFiles, authority: Authority) -> None:
    files.key.chmod(0o640)
    assert files.warnings() == []
    files.key.chmod(0o644)
    [readable] = files.warnings()
    assert readable == f"--tls-key {files.key} can be read by every user: chmod o= protects it"
    certificate, key = authority.files("server", "localhost", days=-1)
    key.chmod(0o600)
    [expired] = TlsFiles(certificate, key).warnings()
    assert expired.startswith(f"--tls-cert {certificate}: the certificate expired at 20")


def test_files_are_followed_and_a_fault_is_told_once(
    files: TlsFiles, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    current = CurrentTls(files, "The port")
    first = current.material
    assert not current.reload()
    assert not caplog.messages

    certificate, key = authority.files("server", "localhost")
    certificate.replace(files.certificate)
    # Half of a pair.
    for _ in range(3):
        assert not current.reload()
    assert current.material == first
    [half] = caplog.messages
    assert half == (
        f"--tls-key {files.key} is not the key of the first certificate in "
        f"--tls-cert {files.certificate}: The port keeps the certificate that it has"
    )

    key.replace(files.key)
    assert current.reload()
    assert not current.reload()
    assert current.material != first
    assert caplog.messages[1].startswith("The port has a new certificate, until ")

    certificate, key = authority.files("server", "localhost", days=-1)
    certificate.replace(files.certificate)
    key.replace(files.key)
    assert current.reload()
    expired = "The port has a new certificate: the certificate expired at "
    assert caplog.messages[2].startswith(expired)

    for number in (3, 4):
        files.key.unlink()
        for _ in range(2):
            assert not current.reload()
        assert "cannot be read" in caplog.messages[number]
        files.key.write_bytes(current.material.key)
        assert current.reload()
        assert not current.reload()
    assert len(caplog.messages) == 5
