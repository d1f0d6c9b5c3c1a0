"""TLS of Envoy's ports: in its configuration, and when the files change."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from ovchat_server.launch.envoy_config import Config, Socket, http_manager, rest_listener
from ovchat_server.launch.errors import LaunchError
from ovchat_server.tls.errors import TlsError
from ovchat_server.tls.files import CurrentTls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ovchat_server.tls.files import TlsFiles

# Seconds between two looks at the files.
INTERVAL: Final = 1.0
_TYPES: Final = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
# Of the secrets: each is a file of its name.
_CERTIFICATE, _CLIENTS = "certificate", "clients"


@dataclass(frozen=True, slots=True)
class EnvoyTls:
    """TLS of Envoy's ports.

    Attributes:
        folder: A private folder. Envoy reads its secrets (SDS) there, which name the files, and
            reads the files again whenever something is renamed there: it need not understand how
            they were replaced, and does not see a pair of which one half is new.
        current: What the files hold, as far as it can be used.
    """

    folder: Path
    current: CurrentTls

    @classmethod
    def make(cls, files: TlsFiles | None, folder: Path) -> Self | None:
        """Read the files; without any there is no TLS.

        Raises:
            LaunchError: They cannot be used.
        """
        try:
            return cls(folder, CurrentTls(files, "Envoy")) if files else None
        except TlsError as error:
            raise LaunchError(str(error)) from error

    @property
    def socket(self) -> Socket:
        """Where Envoy answers without TLS, for us who may have no certificate of a client."""
        return Socket(str(self.folder / "rest"))

    def add_to(self, config: Config) -> None:
        """Put TLS into Envoy's configuration, and write the files that it reads besides."""
        listener = rest_listener(config)
        [chain] = listener["filter_chains"]
        plain = {**listener, "name": "plain", "address": self.socket.config}
        plain["filter_chains"] = [{**chain}]
        config["static_resources"]["listeners"].append(plain)
        # Envoy asks nobody for secrets without a name of its own, not even a file.
        config["node"] = {"id": "ovchat", "cluster": "ovchat"}
        files = self.current.files
        context = self._secret(
            _CERTIFICATE,
            tls_certificate={
                "certificate_chain": {"filename": str(files.certificate.absolute())},
                "private_key": {"filename": str(files.key.absolute())},
            },
        )
        common: Config = {
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificate_sds_secret_configs": [context],
        }
        if files.client_ca:
            common["validation_context_sds_secret_config"] = self._secret(
                _CLIENTS,
                validation_context={"trusted_ca": {"filename": str(files.client_ca.absolute())}},
            )
            # Replaces what a client says there itself. The server finds the name in it.
            http_manager(listener).update(
                forward_client_cert_details="SANITIZE_SET",
                set_current_client_cert_details={"cert": True},
            )
        chain["transport_socket"] = {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": f"{_TYPES}.DownstreamTlsContext",
                "common_tls_context": common,
                "require_client_certificate": files.client_ca is not None,
            },
        }

    def _secret(self, name: str, **secret: dict[str, Any]) -> Config:
        """Write a secret, and return where Envoy finds it."""
        for value in secret.values():
            value["watched_directory"] = {"path": str(self.folder)}
        resource = {"@type": f"{_TYPES}.Secret", "name": name, **secret}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"resources": [resource]}), encoding="utf-8")
        source = {"resource_api_version": "V3", "path_config_source": {"path": str(path)}}
        return {"name": name, "sds_config": source}

    def look(self) -> None:
        """Have Envoy read the files again if they have changed and can be used."""
        if self.current.reload():
            new = self.folder / "new"
            new.touch()
            new.rename(self.folder / "changed")


@contextlib.asynccontextmanager
async def followed(tls: EnvoyTls | None) -> AsyncIterator[None]:
    """Look at the files every second meanwhile."""

    async def follow(tls: EnvoyTls) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            tls.look()

    task = asyncio.create_task(follow(tls)) if tls else None
    try:
        yield
    finally:
        if task:
            task.cancel()
