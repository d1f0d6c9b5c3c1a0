"""TLS of the gRPC server's own port."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from ovchat_server.tls.files import CurrentTls


def server_credentials(current: CurrentTls) -> grpc.ServerCredentials:
    """Return credentials that follow the files: each new connection has what they hold then.

    Args:
        current: What the files hold. With authorities of clients, each client must have a
            certificate of one of them.
    """

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        # None: nothing has changed. gRPC asks for one connection after the other.
        return _configuration(current) if current.reload() else None

    return grpc.dynamic_ssl_server_credentials(
        _configuration(current),
        # None is missing in the types.
        fetch,  # type: ignore[arg-type]
        require_client_authentication=current.material.client_ca is not None,
    )


def _configuration(current: CurrentTls) -> grpc.ServerCertificateConfiguration:
    material = current.material
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], root_certificates=material.client_ca
    )
