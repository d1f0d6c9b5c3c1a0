"""What a server needs for TLS, and whether it can be used."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.names import host_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


@dataclass(frozen=True, slots=True)
class Material:
    """Certificate, key and the authorities of clients, all in PEM."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    def check(self, certificate: str, key: str, client_ca: str) -> None:
        """Check that it can be used; not when: see `validity_fault`.

        Args:
            certificate: What errors call the file of the certificate.
            key: The same, for its key.
            client_ca: The same, for the authorities.

        Raises:
            TlsError: A file is not in PEM, or the key is another certificate's.
        """
        first = _certificates(self.certificate, certificate)[0]
        if _private_key(self.key, key).public_key() != first.public_key():
            raise TlsError(f"{key} is not the key of the first certificate in {certificate}")
        if self.client_ca is not None:
            _certificates(self.client_ca, client_ca)

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


def _certificates(text: bytes, file: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError as error:
        raise TlsError(f"{file} holds no certificate in PEM") from error


def _private_key(text: bytes, file: str) -> PrivateKeyTypes:
    try:
        # Whether its numbers are primes takes a second of a large one, and is its owner's matter.
        return load_pem_private_key(text, password=None, unsafe_skip_rsa_key_validation=True)
    except TypeError as error:
        # How the library says that it is encrypted.
        raise TlsError(f"{file} has a passphrase: give a key without one") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"{file} holds no private key in PEM") from error
