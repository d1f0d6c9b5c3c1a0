"""Certificates of a test's own authority."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from pathlib import Path

DAY = dt.timedelta(days=1)
PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Authority:
    """An authority, and where its files are."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    directory: Path

    @classmethod
    def new(cls, directory: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("authority")
        builder = _builder(name, name, key.public_key(), days=1).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        authority = cls(key, builder.sign(key, hashes.SHA256()), directory)
        authority.file.write_bytes(authority.certificate.public_bytes(PEM))
        return authority

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
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            san: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            san = x509.DNSName(host)
        certificate = (
            _builder(self.certificate.subject, _name("server"), key.public_key(), days=days)
            .add_extension(x509.SubjectAlternativeName([san]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = self.directory / f"server-{certificate.serial_number}.pem"
        plain = serialization.NoEncryption()
        format_ = serialization.PrivateFormat.PKCS8
        file.write_bytes(key.private_bytes(PEM, format_, plain) + certificate.public_bytes(PEM))
        return file


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 9 * DAY)
        .not_valid_after(now + days * DAY)
    )
