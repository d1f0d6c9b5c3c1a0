"""Certificates for trying: `ovchat tls dev-cert`."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

from ovchat_server.tls.authority import Authority
from ovchat_server.tls.errors import TlsError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOSTS: Final = ("localhost", "127.0.0.1", "::1")
DAYS: Final = 365
_TEXT: Final = """\
{folder} has an authority (ca.pem), whose key was thrown away, a server's certificate for
{hosts} and a client's, all valid for {days} days. To serve with them:

ovchat up --tls-cert {folder}/cert.pem --tls-key {folder}/key.pem

With --tls-client-ca {folder}/ca.pem clients need a certificate, too. They then call with:

curl --cacert {folder}/ca.pem --cert {folder}/client-cert.pem --key {folder}/client-key.pem \\
  https://localhost:8000/v3/models
grpcurl -cacert {folder}/ca.pem -cert {folder}/client-cert.pem -key {folder}/client-key.pem \\
  localhost:9000 list
"""


def write_dev_certificates(folder: Path, hosts: Sequence[str], *, force: bool) -> str:
    """Write an authority, a server's certificate and a client's; return how to use them.

    Args:
        folder: Where to; it is made if need be.
        hosts: Names and addresses of the server, besides those of this machine alone.
        force: Replace what is there.

    Raises:
        TlsError: A file is there already, or cannot be written.
    """
    authority = Authority.new("ovchat dev-cert", days=DAYS)
    names = list(dict.fromkeys((*HOSTS, *hosts)))
    server = authority.issue(names[0], names, days=DAYS)
    client = authority.issue("client", days=DAYS)
    texts = {
        "ca.pem": authority.pem,
        "cert.pem": server.pem,
        "key.pem": server.key_pem,
        "client-cert.pem": client.pem,
        "client-key.pem": client.key_pem,
    }
    there = [str(folder / name) for name in texts if (folder / name).exists()]
    if there and not force:
        raise TlsError(f"{', '.join(there)}: there already; --force replaces them")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _write(folder / name, text, mode=0o600 if "key" in name else 0o644)
    except OSError as error:
        raise TlsError(f"{folder} cannot be written to: {error.strerror}") from error
    return _TEXT.format(folder=shlex.quote(str(folder)), hosts=", ".join(names), days=DAYS)


def _write(path: Path, text: bytes, *, mode: int) -> None:
    # Renamed into place: whoever reads the file has the old one or the new one.
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:  # noqa: PTH123
        file.write(text)
    new.replace(path)
