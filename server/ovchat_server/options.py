"""Every option, once: its flag, its environment variable and its key in the config file.

A flag wins over the environment, which wins over the file's [server] table, which wins over
the default. Models come from the file's [[models]] and from --model, which replaces a model
of the file of the same name.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Meta

from ovchat_server.config_file import ConfigFile
from ovchat_server.observability_options import OBSERVABILITY, PORT
from ovchat_server.option_types import (
    Domains,
    ExistingFile,
    Folder,
    NamedPath,
    Origins,
    Setting,
    Switch,
    Value,
)
from ovchat_server.tls_options import TLS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_REPLICAS = 32

SOCKET = Value(Annotated[str, Meta(pattern="^(@.|[^@])", description="a path or @NAME")], "PATH")
# A path is told by its beginning: "a:1" might be one.
_EGRESS = r"^(@.|[./]|([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}\Z)"
EGRESS = Value(
    Annotated[str, Meta(pattern=_EGRESS, description="HOST:PORT, /PATH, ./PATH or @NAME")],
    "ADDRESS",
)
SECONDS = Value(Annotated[float, Meta(ge=0)], "SECONDS")
UP, SERVE = ("up",), ("serve",)


def _cache_dir() -> Path:
    """Return where programs of this user keep what can be made again (XDG)."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "ovchat"
    try:
        return Path.home() / ".cache/ovchat"
    except RuntimeError:
        # A container may run as a user that nobody knows.
        return Path(tempfile.gettempdir()) / "ovchat"


def _read_file(
    context: click.Context, _parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Take the file's [server] table as the defaults of the other options."""
    if path is not None:
        context.default_map = {**(context.default_map or {}), **config_file(path).server()}
    return path


CONFIG = Setting(
    "--config",
    ExistingFile(),
    "TOML file with the tables [server], [limits], [stored_responses], [[models]], [[providers]] "
    "and [[routes]].",
    section="Models",
    # Before the others, whose defaults it sets.
    is_eager=True,
    callback=_read_file,
)
MODEL = Setting(
    "--model",
    NamedPath(),
    "Serve the model in PATH as NAME: a folder, or a GGUF file. Repeatable.",
    section="Models",
    multiple=True,
)
CACHE_DIR = Setting(
    "--cache-dir",
    Folder(),
    "Folder for converted GGUF files; by default in the user's cache.",
    section="Models",
    default=_cache_dir,
    show_default=False,
)
# In the order of --help.
SETTINGS = (
    CONFIG,
    MODEL,
    CACHE_DIR,
    Setting(
        "--host",
        Value(str, "ADDRESS"),
        "Address to listen on; 0.0.0.0 for all interfaces.",
        section="Listening",
        default="127.0.0.1",
    ),
    Setting(
        "--rest-port",
        PORT,
        "Port Envoy listens on, for REST and gRPC.",
        section="Listening",
        commands=UP,
        default=8000,
    ),
    Setting("--grpc-port", PORT, "Port of the gRPC server.", section="Listening", default=9000),
    Setting(
        "--grpc-socket",
        SOCKET,
        "Listen on this Unix socket instead of --grpc-port; @NAME is an abstract socket.",
        section="Listening",
        commands=SERVE,
    ),
    Setting(
        "--admin-port",
        PORT,
        "Port of Envoy's administration, on loopback, for every user of this machine; 0: none, but "
        "a Unix socket that only this user can reach.",
        section="Listening",
        commands=UP,
        default=0,
    ),
    Setting(
        "--api-key-file",
        ExistingFile(),
        "File of API keys, one per line (docs/keys.md); clients must send one. By default none is "
        "needed.",
        section="Listening",
    ),
    *TLS,
    Setting(
        "--allowed-origins",
        Origins(),
        "Origins whose pages in browsers may call, separated by commas: each is SCHEME://HOST or "
        "SCHEME://HOST:PORT; * for all. By default none.",
        section="Listening",
        commands=UP,
        default=(),
    ),
    Setting(
        "--replicas",
        Value(Annotated[int, Meta(ge=1, le=MAX_REPLICAS)], "N"),
        "Servers to start behind Envoy, each with all models.",
        section="Running",
        commands=UP,
        default=1,
    ),
    Setting(
        "--envoy-path",
        ExistingFile(),
        "Envoy's binary; by default the installed package's, then PATH's.",
        section="Running",
        commands=UP,
    ),
    Setting(
        "--egress",
        EGRESS,
        "Envoy's egress listener, through which providers are reached: HOST:PORT, or the path of "
        "a Unix socket, or @NAME of an abstract one. `ovchat up` has one of its own.",
        section="Running",
        commands=SERVE,
    ),
    Setting(
        "--drain-timeout",
        SECONDS,
        "On shutdown, seconds to let running requests finish.",
        section="Running",
        default=30,
    ),
    Setting(
        "--liveness-timeout",
        SECONDS,
        "Replace a server or Envoy that has answered nothing for this many seconds; 0: never.",
        section="Running",
        commands=UP,
        default=15,
    ),
    Setting(
        "--request-timeout",
        SECONDS,
        "Give up on a request after this many seconds; 0: never.",
        section="Requests",
        default=3600,
    ),
    Setting(
        "--idle-timeout",
        SECONDS,
        "End a stream whose client has read nothing for this long; 0: never.",
        section="Requests",
        default=300,
    ),
    Setting(
        "--max-request-bytes",
        Value(Annotated[int, Meta(ge=1024)], "BYTES"),
        "Largest request body accepted; by default 8 MiB, or 32 MiB if a vision model or a "
        "provider is served.",
        section="Requests",
    ),
    Setting(
        "--max-concurrent-streams",
        Value(Annotated[int, Meta(ge=1, le=2**31 - 1)], "N"),
        "Concurrent calls per gRPC connection; further calls wait.",
        section="Requests",
        default=1000,
    ),
    Setting(
        "--allowed-media-domains",
        Domains(),
        "Hosts that images are fetched from over HTTPS, separated by commas: each is HOST or "
        "HOST:PORT, without its subdomains. By default none.",
        section="Requests",
        default=(),
    ),
    Setting(
        "--allowed-local-media-path",
        Folder(),
        "Folder whose files chats may name as images; by default none.",
        section="Requests",
    ),
    Setting(
        "--strict-parameters/--no-strict-parameters",
        Switch(),
        "Reject REST requests with unknown parameters instead of ignoring these.",
        section="Requests",
        default=False,
        show_default=False,
    ),
    Setting(
        "--keep-billing-header/--no-keep-billing-header",
        Switch(),
        "Keep Claude Code's billing header in prompts, although it changes with each request, and "
        "no prompt then begins as an earlier one that is cached.",
        section="Requests",
        default=False,
        show_default=False,
    ),
    *OBSERVABILITY,
)
# The keys of the config file's [server] table, for either command.
SERVER = {item.name or "": item.kind.read for item in SETTINGS if item not in (CONFIG, MODEL)}
# What `ovchat up` tells each server: on how many it shares the processors. A person gives none.
SERVERS = click.Option(["--servers"], type=int, hidden=True)
# And which of several it is, for its log and its metrics.
SERVER_NUMBER = click.Option(["--server-number"], type=int, hidden=True)
# And where it gives it its metrics: --metrics-port is its own.
METRICS_SOCKET = click.Option(["--metrics-socket"], hidden=True)
# And where Envoy reaches it, besides its port or, if it is one of several, instead of it.
ENVOY_SOCKET = click.Option(["--envoy-socket"], hidden=True)


def options_of(command: str) -> list[click.Parameter]:
    """Return the options of a command, which gets them as keywords; see `configuration`."""
    own: list[click.Parameter] = [item for item in SETTINGS if command in item.commands]
    hidden = [SERVERS, SERVER_NUMBER, METRICS_SOCKET, ENVOY_SOCKET]
    return [*own, *hidden] if command in SERVE else own


def config_file(path: Path) -> ConfigFile:
    """Read a config file.

    Raises:
        SettingError: It cannot be read, is not TOML, or has unknown tables.
    """
    return ConfigFile.read(path, SERVER)


def arguments_of(options: Mapping[str, Any]) -> Sequence[str]:
    """Return the flags that give a server the options of `ovchat up`.

    Whatever the environment and the file say besides.
    """
    arguments = [f"--servers={options['replicas']}"]
    names = {item.name for item in SETTINGS if "serve" in item.commands}
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name not in names:
            continue
        if name == "model":
            arguments += [f"{flag}={model.name}={model.path}" for model in value]
        elif isinstance(value, bool):
            arguments.append(flag if value else f"--no-{flag.removeprefix('--')}")
        elif isinstance(value, tuple):
            arguments.append(f"{flag}={','.join(value)}")
        elif value is not None:
            arguments.append(f"{flag}={value}")
    return arguments
