"""Who calls, by the certificate that TLS has checked: here, or in Envoy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from ovchat_server.rpc.middleware import Context

# Envoy writes it anew if it has checked a certificate, and takes it away otherwise.
FORWARDED: Final = "x-forwarded-client-cert"
_CERTIFICATE: Final = re.compile(r'(?:^|;)Cert="([^"]+)"')


def certificate_name(context: Context) -> str:
    """Return the name in the certificate that a caller has shown; "" if it has shown none.

    On the server's own port TLS has it. Envoy passes it on in a header, which is believed on a Unix
    socket alone: Envoy's is in a folder that nobody else can enter. Ask before the call is
    handled, as for the peer.
    """
    for shown in context.auth_context().get("x509_pem_cert", ()):
        return _name(shown)
    if not (context.peer() or "").startswith("unix"):
        return ""
    metadata = dict(context.invocation_metadata() or ())
    forwarded = _CERTIFICATE.search(str(metadata.get(FORWARDED, "")))
    return _name(unquote_to_bytes(forwarded[1])) if forwarded else ""


def _name(pem: bytes) -> str:
    # Only who has TLS loads the library.
    from ovchat_server.tls.names import client_name  # noqa: PLC0415

    return client_name(pem)
