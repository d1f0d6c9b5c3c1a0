"""Every option, once: its flag, its environment variable and its key in the config file.

A flag wins over the environment, which wins over the file's [server] table, which wins over
the default. Models come from the file's [[models]] and from --model, which replaces a model
of the file of the same name.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ovchat_server.api.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

F = TypeVar("F", bound="Callable[..., object]")

ENVIRONMENT_PREFIX = "OVCHAT_"
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,127}")
DEFAULT_KV_BLOCKS = 512
MIB = 1 << 20
MAX_REPLICAS = 32


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model to serve: a [[models]] table.

    Attributes:
        name: The id callers ask for.
        path: Its folder in OpenVINO's format; in a config file relative to that file.
        device: OpenVINO's name of a device, such as "CPU" or "GPU.0".
        kv_blocks: Size of the KV cache in blocks (32 tokens on a CPU, 16 on a GPU).
        kv_cache_gb: Its size in GiB instead.
        max_num_batched_tokens: Most tokens of one step. A smaller number keeps streams
            moving beside a long prompt, a larger one reads long prompts faster.
        tool_parser: How the model writes tool calls: a parser's name, "none", or "auto", which
            sees it in the chat template.
        reasoning_parser: How it writes reasoning: the same.
        constrain_tool_calls: Hold the calls that it makes of its own accord to the tools'
            schemas. Those that the caller forces are held to them anyway.
        properties: OpenVINO's, such as INFERENCE_PRECISION_HINT.
        grammar_timeout: Seconds that compiling the form of an answer may take.
        step_timeout: Seconds after which an engine that says nothing hangs, and is restarted.
        max_queue: Most requests that may wait for a place in the engine; more are refused.
        max_queue_wait: Seconds that each of them may wait.
    """

    name: str
    path: Path
    device: str = "CPU"
    kv_blocks: int | None = None
    kv_cache_gb: int | None = None
    max_num_batched_tokens: int = 2048
    tool_parser: str = "auto"
    reasoning_parser: str = "auto"
    constrain_tool_calls: bool = True
    properties: dict[str, str | int | float | bool] = {}
    grammar_timeout: float = 1.5
    step_timeout: float = 60.0
    max_queue: int = 256
    max_queue_wait: float = 60.0

    def __post_init__(self) -> None:
        """Check what types cannot say.

        Raises:
            ValueError: A value makes no sense; msgspec names the table it stands in.
        """
        if not MODEL_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name for a model: use letters, digits, . _ - /")
        if self.kv_blocks is not None and self.kv_cache_gb is not None:
            raise ValueError("kv_blocks and kv_cache_gb say the same thing: give one")
        if self.kv_blocks is not None and self.kv_blocks < 4:  # noqa: PLR2004
            raise ValueError(f"kv_blocks must be at least 4, got {self.kv_blocks}")
        if self.kv_cache_gb is not None and self.kv_cache_gb < 1:
            raise ValueError(f"kv_cache_gb must be at least 1, got {self.kv_cache_gb}")
        if self.max_num_batched_tokens < 1:
            raise ValueError("max_num_batched_tokens must be at least 1")
        for name in ("grammar_timeout", "step_timeout", "max_queue_wait"):
            # Not "<= 0", which a NaN is not.
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.max_queue < 1:
            raise ValueError(f"max_queue must be at least 1, got {self.max_queue}")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve.

    Attributes:
        models: At least one.
        host: Address that both ports listen on.
        grpc_port: Of the gRPC server, or of Envoy before several; 0 picks a free one.
        grpc_socket: Unix socket that the gRPC server listens on instead; see `socket_target`.
        rest_port: Of Envoy (`ovchat up` only).
        admin_port: Of Envoy's administration, on loopback; 0 picks a free one.
        envoy_path: Envoy's binary; None finds it.
        replicas: Servers to start (`ovchat up` only).
        drain_timeout: Seconds that running requests get to finish when the server stops.
        request_timeout: Seconds that the work on a request may take; 0: any.
        idle_timeout: Seconds after which a stream whose reader takes nothing ends; 0: never.
        max_request_bytes: Largest request.
        max_concurrent_streams: Calls at once on one connection to the gRPC server.
        limits: How much a request may hold: the file's [limits] table.
        strict_parameters: Refuse parameters that are unknown instead of ignoring them.
        api_keys: Of those who may call; none: everybody may.
        log_level: Python's name of the lowest level that is logged.
    """

    models: tuple[ModelSettings, ...]
    host: str
    grpc_port: int
    grpc_socket: str | None
    rest_port: int
    admin_port: int
    envoy_path: Path | None
    replicas: int
    drain_timeout: float
    request_timeout: float
    idle_timeout: float
    max_request_bytes: int
    max_concurrent_streams: int
    limits: Limits
    strict_parameters: bool
    api_keys: tuple[str, ...]
    log_level: str


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


def socket_target(socket: str) -> str:
    """What gRPC calls a Unix socket: `socket` is its path, or "@" and an abstract name."""
    if socket.startswith("@"):
        return f"unix-abstract:{socket.removeprefix('@')}"
    return f"unix:{socket}"


def with_options(command: F) -> F:
    """Give a command all options. It gets them as keywords; see `settings_from`."""
    for decorate in reversed(_options()):
        command = decorate(command)
    return command


def settings_from(options: Mapping[str, Any]) -> Settings:
    """The settings that a command's options make.

    Raises:
        click.UsageError: There is no model to serve.
    """
    named = {model.name: model for model in _file_models(options["config"])}
    for model in options["model"]:
        if sum(model.name == other.name for other in options["model"]) > 1:
            raise click.UsageError(f"--model: two models are called {model.name!r}")
        named[model.name] = model
    if not named:
        raise click.UsageError("no model to serve: give --model NAME=PATH, or [[models]] in a file")
    apart = {"config", "model", "api_key_file"}
    rest = {key: value for key, value in options.items() if key not in apart}
    keys = _read_keys(options["api_key_file"])
    limits = _file_limits(options["config"])
    return Settings(models=tuple(named.values()), limits=limits, api_keys=keys, **rest)


def arguments_of(options: Mapping[str, Any]) -> Sequence[str]:
    """The flags that give another command the same options."""
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
            help="Serve the model in folder PATH as NAME. Repeatable.",
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
            type=click.FloatRange(0),
            default=3600.0,
            help="Seconds that the server works on a request at most; 0 for any time.",
        ),
        _option(
            "--idle-timeout",
            type=click.FloatRange(0),
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
        _option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
            default="info",
            help="Lowest level to log.",
        ),
    ]


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
    table = _read_file(path).get("server", {})
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


def _file_models(path: Path | None) -> Iterable[ModelSettings]:
    if path is None:
        return
    try:
        models = msgspec.convert(
            _read_file(path).get("models", []), list[ModelSettings], dec_hook=_to_path
        )
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{path}: models: {error}") from error
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"{path}: two models are called {name!r}")
    for model in models:
        yield msgspec.structs.replace(model, path=path.parent / model.path)


def _file_limits(path: Path | None) -> Limits:
    table = {} if path is None else _read_file(path).get("limits", {})
    try:
        limits = msgspec.convert(table, Limits)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{path}: limits: {error}") from error
    for name in table.keys() - {field.name for field in dataclasses.fields(Limits)}:
        raise click.UsageError(f"{path}: there is no limit {name!r}")
    return limits


def _read_keys(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--api-key-file {path} cannot be read: {error}") from error
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        # Or a file that was emptied by mistake would open the server to everybody.
        raise click.UsageError(f"--api-key-file {path} holds no key")
    return keys


def _to_path(_kind: type, value: object) -> Path:
    if not isinstance(value, str):
        # msgspec says where.
        raise ValueError(f"Expected `str`, got {value!r}")  # noqa: TRY004
    return Path(value)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is not TOML: {error}") from error
    for key in content.keys() - {"server", "limits", "models"}:
        raise click.UsageError(f"{path}: there is no table {key!r}, only server, limits and models")
    return content
