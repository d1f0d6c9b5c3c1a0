"""What a server needs for TLS: read, and checked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.names import host_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeAlias

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    # An option, and the file that it names.
    Named: TypeAlias = "tuple[str, Path]"


@dataclass(frozen=True, slots=True)
class Material:
    """Certificate and key, which fit each other, and the authorities of clients, all in PEM."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    @classmethod
    def of(cls, certificate: Named, key: Named, client_ca: Named | None) -> Self:
        """Read the files.

        Raises:
            TlsError: One cannot be read or used, or the key is another certificate's.
        """
        found = cls(_read(*certificate), _read(*key), client_ca and _read(*client_ca))
        first = _certificates(found.certificate, *certificate)[0]
        if _private_key(found.key, *key).public_key() != first.public_key():
            raise TlsError(
                f"{key[0]} {key[1]} is not the key of the first certificate in "
                f"{certificate[0]} {certificate[1]}"
            )
        if client_ca and found.client_ca is not None:
            _certificates(found.client_ca, *client_ca)
        return found

    @property
    def first(self) -> x509.Certificate:
        """The server's own certificate."""
        return x509.load_pem_x509_certificates(self.certificate)[0]

    @property
    def hosts(self) -> list[str]:
        """The hosts and addresses that the certificate is for."""
        return host_names(self.first)

    def valid_until(self) -> str:
        """Return when the certificate expires."""
        return self.first.not_valid_after_utc.isoformat()

    def validity_fault(self) -> str:
        """Return why clients will refuse the certificate at this time; "" if they will not."""
        first, now = self.first, dt.datetime.now(dt.UTC)
        if first.not_valid_after_utc < now:
            return f"the certificate expired at {self.valid_until()}: clients refuse it"
        if first.not_valid_before_utc > now:
            since = first.not_valid_before_utc.isoformat()
            return f"the certificate is valid from {since} on: until then clients refuse it"
        return ""


def _read(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{option} {path} cannot be read: {error.strerror}") from error


def _certificates(text: bytes, option: str, path: Path) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError as error:
        raise TlsError(f"{option} {path} holds no certificate in PEM") from error


def _private_key(text: bytes, option: str, path: Path) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(text, password=None)
    except TypeError as error:
        # How the library says that it is encrypted.
        raise TlsError(f"{option} {path} has a passphrase: give a key without one") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"{option} {path} holds no private key in PEM") from error
