"""An authority and the certificates that it signs, for trying and for tests."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY: Final = dt.timedelta(days=1)
PEM: Final = serialization.Encoding.PEM
_USES: Final = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate, and its private key."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        """The certificate in PEM."""
        return self.certificate.public_bytes(PEM)

    @property
    def key_pem(self) -> bytes:
        """The key in PEM, without a passphrase."""
        plain = serialization.NoEncryption()
        return self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain)


@dataclass(frozen=True, slots=True)
class Authority(Certificate):
    """An authority, whose certificate is signed by itself."""

    @classmethod
    def new(cls, name: str, *, days: int = 1) -> Self:
        """Make an authority that is valid for some days."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key.public_key(), days=days).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        return cls(key, _with_usage(builder, key, signs=True).sign(key, hashes.SHA256()))

    def issue(self, name: str, alternatives: Sequence[str] = (), *, days: int = 1) -> Certificate:
        """Make a certificate of a server or a client.

        Args:
            name: Its common name.
            alternatives: Its further names: hosts, addresses and URIs.
            days: For how long it is valid; if negative, since when it is not.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(self.certificate.subject, name, key.public_key(), days=days)
        builder = _with_usage(builder, self.key, signs=False).add_extension(
            x509.ExtendedKeyUsage(_USES), critical=False
        )
        if alternatives:
            names = x509.SubjectAlternativeName([*map(_general_name, alternatives)])
            builder = builder.add_extension(names, critical=False)
        return Certificate(key, builder.sign(self.key, hashes.SHA256()))


def _general_name(name: str) -> x509.GeneralName:
    if "://" in name:
        return x509.UniformResourceIdentifier(name)
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    issuer: x509.Name | str, subject: str, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    end = now + days * DAY
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer if isinstance(issuer, x509.Name) else _name(issuer))
        .subject_name(_name(subject))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks differ.
        .not_valid_before(min(now, end) - DAY)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _with_usage(
    builder: x509.CertificateBuilder, issuer: ec.EllipticCurvePrivateKey, *, signs: bool
) -> x509.CertificateBuilder:
    """Add what strict clients want to be there."""
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    usage = x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return builder.add_extension(identifier, critical=False).add_extension(usage, critical=True)
