"""The plan of what `ovchat up` starts, decided and checked before anything runs."""

from __future__ import annotations

import itertools
import json
import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from ovchat_server.domain.models import MODEL_TYPE
from ovchat_server.launch.admin import Admin
from ovchat_server.launch.banner import banner
from ovchat_server.launch.child import Program
from ovchat_server.launch.doors import Doors
from ovchat_server.launch.egress import add_egress
from ovchat_server.launch.envoy_config import (
    Address,
    Bounds,
    EnvoyFiles,
    Listening,
    Socket,
    connect_host,
    envoy_config,
    locate_envoy,
)
from ovchat_server.launch.envoy_logs import EnvoyLogs
from ovchat_server.launch.errors import LaunchError
from ovchat_server.launch.key_checks import check_keys
from ovchat_server.launch.ports import check_free, free_port, numeric_host
from ovchat_server.launch.tls import EnvoyTls
from ovchat_server.open_files import connections
from ovchat_server.processors import available, serving
from ovchat_server.serving.model_path import is_vision_model
from ovchat_server.serving.model_task import model_task
from ovchat_server.settings import socket_target
from ovchat_server.telemetry.logs import has_colours

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from ovchat_server.launch.envoy_config import Config
    from ovchat_server.settings import Settings

# More workers would serve no more: one carries tens of thousands of events a second.
_ENVOY_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Replica:
    """One server."""

    name: str
    """Names it in messages."""
    target: str
    """The gRPC target at which it is reached."""
    upstream: Socket
    """The same address for Envoy."""
    metrics_socket: str
    """The abstract socket on which it is asked for its metrics."""
    arguments: Sequence[str] = ()
    """Arguments of `ovchat serve` for this server alone."""

    def with_argument(self, argument: str) -> Replica:
        """Return it with another argument."""
        return replace(self, arguments=(*self.arguments, argument))


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What to start, decided and checked."""

    host: str
    """The numeric address at which this machine reaches the service."""
    everywhere: bool
    """It is reached on all addresses of this machine."""
    rest_port: int
    grpc_port: int
    admin: Admin
    models: Mapping[str, bool]
    """By name, whether it takes images."""
    chats: Collection[str]
    """The names of those that chat."""
    key_file: Path | None
    tls: EnvoyTls | None
    drain_timeout: float
    liveness_timeout: float
    replicas: Sequence[Replica]
    envoy: Program
    """Envoy, which reads its configuration from standard input."""

    @classmethod
    def make(cls, settings: Settings, folder: Path) -> Self:
        """Make the plan, checking all that can be checked before anything runs.

        Args:
            settings: The settings.
            folder: A private one, for sockets and what else Envoy needs.

        Raises:
            LaunchError: A setting is for `ovchat serve` alone, a port is not free, or Envoy or
                its files are missing.
        """
        host = numeric_host(settings.host)
        rest_port = settings.rest_port or free_port()
        if not settings.grpc_port:
            msg = "--grpc-port 0 is for `ovchat serve`: here Envoy has to know the port"
            raise LaunchError(msg)
        ports = {"--rest-port": rest_port, "--grpc-port": settings.grpc_port}
        ports |= {"--admin-port": settings.admin_port, "--metrics-port": settings.metrics_port}
        for (one, port), (other, same) in itertools.combinations(ports.items(), 2):
            if port and port == same:
                msg = f"{one} and {other} are both {port}: choose another for one"
                raise LaunchError(msg)
        check_free(host, rest_port, "--rest-port")
        check_free(host, settings.grpc_port, "--grpc-port")
        admin = _admin(settings, folder)
        # Abstract sockets: a free port may be another's by the time a server is started again.
        # Nobody can guess the name and be first.
        sockets = f"@ovchat-{os.getpid()}-{secrets.token_hex(8)}"
        egress = Socket(f"{sockets}-egress")
        replicas = _replicas(settings.replicas, folder, sockets)
        # Several servers share the gRPC port, with Envoy before them; one has it for itself.
        envoys = (rest_port,) if len(replicas) == 1 else (rest_port, settings.grpc_port)
        files = EnvoyFiles.locate()
        config = envoy_config(
            files,
            Listening(host, envoys, admin.address, settings.allowed_origins),
            [replica.upstream for replica in replicas],
            _bounds(settings),
            logs=_logs(settings),
        )
        if settings.api_key_file:
            check_keys(config)
        if tls := EnvoyTls.make(settings.tls, folder):
            tls.add_to(config)
        if settings.providers:
            add_egress(config, files.egress, egress, settings.providers)
            replicas = [replica.with_argument(f"--egress={egress.name}") for replica in replicas]
        return cls(
            host=connect_host(host),
            everywhere=connect_host(host) != host,
            rest_port=rest_port,
            grpc_port=settings.grpc_port,
            admin=admin,
            models={model.name: is_vision_model(model.path) for model in settings.models},
            chats={
                model.name
                for model in settings.models
                if (model.task or model_task(model.path)) == MODEL_TYPE
            },
            key_file=settings.api_key_file,
            tls=tls,
            drain_timeout=settings.drain_timeout,
            liveness_timeout=settings.liveness_timeout,
            replicas=replicas,
            envoy=_envoy(settings, config),
        )

    @property
    def open_to_all(self) -> bool:
        """Whether everybody who reaches this machine may call."""
        certified = self.tls is not None and self.tls.current.files.client_ca is not None
        return self.everywhere and self.key_file is None and not certified

    def banner(self, served: Iterable[str]) -> str:
        """Render the text that is printed when it is ready, with requests to models served."""
        ports = self.rest_port, self.grpc_port
        return banner(
            Doors.of(self.host, ports, self.tls.current if self.tls else None),
            models={model: self.models[model] for model in served if model in self.chats},
            key_file=self.key_file,
        )


def _admin(settings: Settings, folder: Path) -> Admin:
    """Return where Envoy's admin interface listens; on loopback any user of this machine calls."""
    if not settings.admin_port:
        return Admin(Socket(str(folder / "envoy-admin")))
    check_free("127.0.0.1", settings.admin_port, "--admin-port")
    return Admin(Address("127.0.0.1", settings.admin_port))


def _bounds(settings: Settings) -> Bounds:
    # Each request to a provider has a connection to Envoy's way out, and one from it or two.
    besides = sum(3 * provider.max_requests for provider in settings.providers)
    return Bounds(settings.max_request_bytes, settings.max_concurrent_streams, connections(besides))


def _logs(settings: Settings) -> EnvoyLogs:
    return EnvoyLogs(settings.log_format, settings.log_level, has_colours())


def _envoy(settings: Settings, config: Config) -> Program:
    processors = serving(available(), settings.replicas, engines=bool(settings.models))
    return Program(
        (
            str(locate_envoy(settings.envoy_path)),
            # Not --config-yaml: ps would show 15 kB of it. Envoy refuses /dev/stdin.
            "--config-path",
            "/dev/fd/0",
            *_logs(settings).process_options,
            # Or it warns of having caught our own SIGTERM.
            "--component-log-level",
            "main:error",
            "--concurrency",
            str(min(_ENVOY_WORKERS, len(processors))),
            # Otherwise two Envoys on one machine share memory by a number, and the
            # second does not start.
            "--disable-hot-restart",
            # The access log; 10 s unless told otherwise.
            "--file-flush-interval-msec",
            "1000",
        ),
        ps_name="ovchat-envoy",
        text=json.dumps(config),
        processors=processors,
    )


def _replicas(count: int, folder: Path, sockets: str) -> Sequence[Replica]:
    return [
        Replica(
            "the server" if count == 1 else f"server {number}",
            socket_target(socket),
            Socket(socket),
            metrics,
            (
                f"--envoy-socket={socket}",
                f"--metrics-socket={metrics}",
                *([f"--server-number={number}"] if count > 1 else []),
            ),
        )
        for number in range(1, count + 1)
        # A file in a private folder: who calls on it may say in headers whose call it is.
        for socket in [str(folder / f"server-{number}")]
        for metrics in [f"{sockets}-{number}-metrics"]
    ]
