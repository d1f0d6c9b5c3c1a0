"""Every option, once: its flag, its environment variable and its key in the config file.

A flag wins over the environment, which wins over the file's [server] table, which wins over
the default. Models come from the file's [[models]] and from --model, which replaces a model
of the file of the same name.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ovchat_server.config_file import file_limits, file_models, read_file, read_keys
from ovchat_server.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

F = TypeVar("F", bound="Callable[..., object]")

ENVIRONMENT_PREFIX = "OVCHAT_"
MIB = 1 << 20
MAX_REPLICAS = 32


class _Seconds(click.FloatRange):
    """A number of seconds: not "nan", which compares with nothing, nor "inf"."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)  # type: ignore[arg-type]
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


class _NamedPath(click.ParamType[ModelSettings]):
    """NAME=PATH."""

    name = "name=path"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> ModelSettings:
        if isinstance(value, ModelSettings):
            return value
        name, separator, path = str(value).partition("=")
        if not separator or not path:
            self.fail(f"{value!r} is not NAME=PATH, such as demo=models/demo", param, ctx)
        try:
            return ModelSettings(name=name, path=Path(path))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def with_options(command: F) -> F:
    """Give a command all options. It gets them as keywords; see `settings_from`."""
    for decorate in reversed(_options()):
        command = decorate(command)
    return command


def settings_from(options: Mapping[str, Any]) -> Settings:
    """Build the settings of a command's options.

    Raises:
        click.UsageError: There is no model to serve.
    """
    named = {model.name: model for model in file_models(options["config"])}
    for model in options["model"]:
        if sum(model.name == other.name for other in options["model"]) > 1:
            raise click.UsageError(f"--model: two models are called {model.name!r}")
        named[model.name] = model
    if not named:
        raise click.UsageError("no model to serve: give --model NAME=PATH, or [[models]] in a file")
    apart = {"config", "model"}
    rest = {key: value for key, value in options.items() if key not in apart}
    keys = read_keys(options["api_key_file"])
    limits = file_limits(options["config"])
    return Settings(models=tuple(named.values()), limits=limits, api_keys=keys, **rest)


def arguments_of(options: Mapping[str, Any]) -> Sequence[str]:
    """Return the flags that give another command the same options."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name == "model":
            arguments += [f"{flag}={model.name}={model.path}" for model in value]
        elif isinstance(value, bool):
            arguments.append(flag if value else f"--no-{flag.removeprefix('--')}")
        elif value is not None:
            arguments.append(f"{flag}={value}")
    return arguments


def _options() -> list[Callable[[F], F]]:
    port = click.IntRange(0, 65535)
    return [
        click.option(
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            envvar=f"{ENVIRONMENT_PREFIX}CONFIG",
            show_envvar=True,
            # Before the others, whose defaults it sets.
            is_eager=True,
            callback=_read_defaults,
            help="TOML file with a [server] table, a [limits] table and [[models]] tables.",
        ),
        _option(
            "--model",
            type=_NamedPath(),
            multiple=True,
            metavar="NAME=PATH",
            help="Serve the model in PATH as NAME: a folder, or a GGUF file. Repeatable.",
        ),
        _option(
            "--host", default="127.0.0.1", help="Address to listen on; 0.0.0.0 for all networks."
        ),
        _option("--grpc-port", type=port, default=9000, help="Port of the gRPC server."),
        _option(
            "--grpc-socket",
            metavar="PATH",
            help="Unix socket to listen on instead of that port; @NAME for one without a file. "
            "For `ovchat serve`.",
        ),
        _option("--rest-port", type=port, default=8000, help="Port of Envoy: REST and gRPC."),
        _option(
            "--admin-port",
            type=port,
            default=0,
            help="Port of Envoy's administration, on loopback only; 0 picks a free one.",
        ),
        _option(
            "--envoy-path",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Envoy's binary; by default the installed package's, then PATH's.",
        ),
        _option(
            "--replicas",
            type=click.IntRange(1, MAX_REPLICAS),
            default=1,
            help="Servers that `ovchat up` starts behind Envoy, each with all models.",
        ),
        _option(
            "--drain-timeout",
            type=_Seconds(),
            default=30.0,
            help="Seconds that running requests get to finish on shutdown.",
        ),
        _option(
            "--request-timeout",
            type=_Seconds(),
            default=3600.0,
            help="Seconds that the server works on a request at most; 0 for any time.",
        ),
        _option(
            "--idle-timeout",
            type=_Seconds(),
            default=300.0,
            help="Seconds after which a stream ends whose reader takes nothing; 0 for never.",
        ),
        _option(
            "--max-request-bytes",
            type=click.IntRange(1024),
            default=8 * MIB,
            help="Largest request.",
        ),
        _option(
            "--max-concurrent-streams",
            type=click.IntRange(1, 2**31 - 1),
            default=1000,
            help="Calls at once on one connection to the gRPC server; more wait.",
        ),
        _option(
            "--strict-parameters/--no-strict-parameters",
            default=False,
            help="Refuse REST requests with unknown parameters instead of ignoring those.",
        ),
        _option(
            "--api-key-file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File with an API key a line: callers need one. By default none is needed.",
        ),
        cache_option(),
        _option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
            default="info",
            help="Lowest level to log.",
        ),
    ]


def cache_option() -> Callable[[F], F]:
    """Return the option that says where GGUF files are converted to."""
    return _option(
        "--cache-dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=_cache_dir,
        help="Where GGUF files are converted to, once; by default in the user's cache.",
    )


def _cache_dir() -> Path:
    """Return where programs of this user keep what can be made again (XDG)."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "ovchat"
    try:
        return Path.home() / ".cache/ovchat"
    except RuntimeError:
        # A container may run as a user that nobody knows.
        return Path(tempfile.gettempdir()) / "ovchat"


def _option(flag: str, **attributes: Any) -> Callable[[F], F]:  # noqa: ANN401  click's own
    name = flag.partition("/")[0].removeprefix("--")
    environment = ENVIRONMENT_PREFIX + name.replace("-", "_").upper()
    return click.option(flag, envvar=environment, show_envvar=True, show_default=True, **attributes)


def _read_defaults(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Take the file's [server] table as the defaults of the other options."""
    if path is None:
        return None
    table = read_file(path).get("server", {})
    if not isinstance(table, dict):
        raise click.BadParameter(f"{path}: server must be a table, [server]", context, parameter)
    known = {item.name: item.type for item in context.command.params}
    for key, value in table.items():
        if key not in known.keys() - {"config", "model"}:
            raise click.BadParameter(f"{path}: [server] has no option {key!r}", context, parameter)
        switch = isinstance(known[key], click.types.BoolParamType)
        if isinstance(value, bool) != switch or not isinstance(value, str | int | float):
            expected = "true or false" if switch else "a string or a number"
            message = f"{path}: [server] {key} must be {expected}, got {value!r}"
            raise click.BadParameter(message, context, parameter)
        if isinstance(known[key], click.Path):
            table[key] = str(path.parent / str(value))
    context.default_map = {**(context.default_map or {}), **table}
    return path
