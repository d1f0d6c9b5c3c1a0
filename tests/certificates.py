"""Certificates of a test's own authority, and where their files are."""

from __future__ import annotations

import itertools
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.tls import authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """An authority, and where its files are."""

    issuer: authority.Authority
    directory: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def new(cls, directory: Path) -> Authority:
        directory.mkdir(parents=True, exist_ok=True)
        made = cls(authority.Authority.new("authority"), directory)
        made.file.write_bytes(made.issuer.pem)
        return made

    @property
    def file(self) -> Path:
        return self.directory / "authority.pem"

    def server(self, host: str, *, days: int = 1) -> ssl.SSLContext:
        """TLS of a server with a certificate for a host that is valid for some more days."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file(host, days=days))
        return context

    def server_file(self, host: str, *, days: int = 1) -> Path:
        """The key and the certificate of such a server."""
        certificate, key = self.files("server", host, days=days)
        certificate.write_bytes(key.read_bytes() + certificate.read_bytes())
        return certificate

    def files(self, name: str, *alternatives: str, days: int = 1) -> tuple[Path, Path]:
        """A certificate, and its key."""
        issued = self.issuer.issue(name, alternatives, days=days)
        number = next(self.numbers)
        certificate, key = (self.directory / f"{kind}-{number}.pem" for kind in ("cert", "key"))
        certificate.write_bytes(issued.pem)
        key.write_bytes(issued.key_pem)
        return certificate, key
