"""TLS of a gRPC client of ours: `ovchat top`, and the health check of containers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ovchat_server.tls.errors import TlsError

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

F = TypeVar("F", bound="Callable[..., Any]")

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How a client speaks TLS.

    Attributes:
        cacert: The authorities that it trusts, or the very certificate of the server.
        cert: The certificate that it shows, if any.
        key: Its key.
        servername: The name that the server's certificate must have; None for that of the address.
    """

    cacert: Path
    cert: Path | None = None
    key: Path | None = None
    servername: str | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials of a channel.

        Raises:
            TlsError: A file cannot be read.
        """
        # `ovchat` knows the options of all its commands, and starts without gRPC.
        import grpc  # noqa: PLC0415

        try:
            key, cert = (path.read_bytes() if path else None for path in (self.key, self.cert))
            return grpc.ssl_channel_credentials(self.cacert.read_bytes(), key, cert)
        except OSError as error:
            raise TlsError(f"{error.filename} cannot be read: {error.strerror}") from error

    def options(self) -> tuple[tuple[str, str], ...]:
        """Return the options of a channel.

        Raises:
            TlsError: --cacert holds no certificate.
        """
        name = self.servername or self._own_name()
        return (("grpc.ssl_target_name_override", name),) if name else ()

    def _own_name(self) -> str | None:
        """Return a name of the trusted certificate, if it is the server's own.

        An authority's has none. The server's is trusted whatever it is reached as: only who has
        its key can show it.
        """
        from cryptography import x509  # noqa: PLC0415

        from ovchat_server.tls.names import host_names  # noqa: PLC0415

        try:
            certificate = x509.load_pem_x509_certificate(self.cacert.read_bytes())
        except (OSError, ValueError) as error:
            raise TlsError(f"--cacert {self.cacert} holds no certificate in PEM") from error
        return next((name.replace("*", "any") for name in host_names(certificate)), None)


def with_client_tls(command: F) -> F:
    """Give a command the options of a client, of which `client_tls` makes TLS."""
    options = (
        click.option(
            "--cacert",
            type=FILE,
            metavar="FILE",
            envvar="OVCHAT_TLS_CERT",
            help="Speak TLS, and trust the authorities in FILE (PEM), or the server's own "
            "certificate; by default where OVCHAT_TLS_CERT names that.",
        ),
        click.option("--cert", type=FILE, metavar="FILE", help="Certificate to show (PEM)."),
        click.option("--key", type=FILE, metavar="FILE", help="Its private key (PEM)."),
        click.option("--servername", metavar="NAME", help="Name that the certificate must have."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def client_tls(
    cacert: Path | None, cert: Path | None, key: Path | None, servername: str | None
) -> ClientTls | None:
    """Return TLS as the options say; None without --cacert.

    Raises:
        click.UsageError: One needs another.
    """
    if (cert is None) != (key is None):
        raise click.UsageError("--cert and --key need each other")
    if cacert is None:
        if cert or servername:
            raise click.UsageError("--cert and --servername need --cacert")
        return None
    return ClientTls(cacert, cert, key, servername)
