"""The names in a certificate."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cryptography import x509

_MOST: Final = 255


def host_names(certificate: x509.Certificate) -> list[str]:
    """Return the hosts and addresses that a server's certificate is for."""
    found = _alternatives(certificate)
    if found is None:
        return []
    addresses = found.get_values_for_type(x509.IPAddress)
    return [*found.get_values_for_type(x509.DNSName), *map(str, addresses)]


@lru_cache(maxsize=1024)
def client_name(pem: bytes) -> str:
    """Return whose a client's certificate is: its first URI, else its first host, else its CN.

    Returns:
        The name; "" if there is none, or none that can be shown.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        found = _alternatives(certificate)
    except ValueError:
        return ""
    common = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    names = [
        *(found.get_values_for_type(x509.UniformResourceIdentifier) if found else ()),
        *(found.get_values_for_type(x509.DNSName) if found else ()),
        *(str(attribute.value) for attribute in common),
    ]
    name = names[0] if names else ""
    return name if name.isprintable() and len(name) <= _MOST else ""


def _alternatives(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return None
    return found.value
