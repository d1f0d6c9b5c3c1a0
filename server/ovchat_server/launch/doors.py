"""The addresses that clients on this machine use, and what their programs need for TLS."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ovchat_server.launch.ports import authority

if TYPE_CHECKING:
    from ovchat_server.tls.files import CurrentTls, TlsFiles


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """The files of TLS that clients need.

    Attributes:
        cacert: What they trust.
        cert: The certificate that they show, if they need one.
        key: Its key.
    """

    cacert: Path
    cert: Path | None
    key: Path | None

    @classmethod
    def of(cls, files: TlsFiles) -> Self:
        """Guess them: they are beside the server's as `ovchat tls dev-cert` writes them.

        Otherwise clients may trust the server's certificate itself; of theirs nothing is known.
        """
        authority = files.certificate.with_name("ca.pem")
        cacert = authority if authority.exists() else files.certificate
        if files.client_ca is None:
            return cls(cacert, None, None)
        own = [files.client_ca.with_name(f"client-{kind}.pem") for kind in ("cert", "key")]
        cert, key = (path if path.exists() else Path(path.name) for path in own)
        return cls(cacert, cert, key)

    @property
    def flags(self) -> str:
        """The flags of `curl` and `buf curl`."""
        given = {"--cacert": self.cacert, "--cert": self.cert, "--key": self.key}
        return "".join(f"{flag} {shown(path)} " for flag, path in given.items() if path)

    @property
    def sdk(self) -> str:
        """Python that makes `http`, with which OpenAI's SDK calls."""
        shows = f"tls.load_cert_chain({str(self.cert)!r}, {str(self.key)!r})\n" if self.cert else ""
        return f"""\
import ssl
from openai import DefaultHttpxClient, OpenAI
tls = ssl.create_default_context(cafile={str(self.cacert)!r})
{shows}http = DefaultHttpxClient(verify=tls)"""

    @property
    def credentials(self) -> str:
        """Python that makes the credentials of a gRPC channel."""
        # In the order of the arguments.
        paths = [str(path) for path in (self.cacert, self.key, self.cert) if path]
        return f'grpc.ssl_channel_credentials(*[open(path, "rb").read() for path in {paths}])'


@dataclass(frozen=True, slots=True)
class Doors:
    """Where clients on this machine call.

    Attributes:
        host: The address or, with TLS, a name that the certificate has.
        rest_port: Of REST.
        grpc_port: Of gRPC.
        tls: The files of TLS; None: there is none.
    """

    host: str
    rest_port: int
    grpc_port: int
    tls: ClientFiles | None = None

    @classmethod
    def of(cls, host: str, ports: tuple[int, int], current: CurrentTls | None) -> Self:
        """Find what clients need to know.

        Args:
            host: The numeric address.
            ports: Of REST and gRPC.
            current: TLS of the ports, if they have any.
        """
        if current is None:
            return cls(host, *ports)
        names = current.material.hosts
        named = host if host in names or not names else names[0].replace("*", "any")
        return cls(named, *ports, ClientFiles.of(current.files))

    @property
    def rest(self) -> str:
        """The URL of REST."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{authority(self.host, self.rest_port)}"

    @property
    def grpc(self) -> str:
        """The target of gRPC."""
        return authority(self.host, self.grpc_port)

    @property
    def grpc_url(self) -> str:
        """The URL of gRPC, for `buf curl`."""
        return f"{'https' if self.tls else 'http'}://{self.grpc}"

    @property
    def flags(self) -> str:
        """The flags of `curl` and `buf curl` for TLS."""
        return self.tls.flags if self.tls else ""


def shown(path: Path) -> str:
    """Return what to type for a path: from the folder one is in, if that has it."""
    within = path.is_relative_to(Path.cwd())
    return shlex.quote(str(path.relative_to(Path.cwd()) if within else path))
