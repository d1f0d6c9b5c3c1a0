"""The command line."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from setproctitle import setproctitle

from ovchat_server.commands import Commands, ServerCommand
from ovchat_server.configuration import settings_from
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.weight_form import WeightForm
from ovchat_server.credential_commands import keys, tls
from ovchat_server.engine.process.telemetry_off import turn_off_telemetry
from ovchat_server.environment import unknown_variables
from ovchat_server.gguf_models import check_paths, with_folders
from ovchat_server.launch.child import Program
from ovchat_server.open_files import raise_limit, warn_if_few
from ovchat_server.options import CACHE_DIR, arguments_of
from ovchat_server.resources import resource
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.settings import ModelSettings
from ovchat_server.telemetry.logs import configure_logs, decided_format
from ovchat_server.tls.client import client_tls, with_client_tls
from ovchat_server.tls.errors import TlsError

if TYPE_CHECKING:
    from ovchat_server.settings import Settings

logger = logging.getLogger(__name__)

_DEMO = "models/demo"
_ADDRESS = "127.0.0.1:9000"


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="ovchat", prog_name="ovchat")
def main() -> None:
    """Chat completions on OpenVINO GenAI: gRPC first, and OpenAI's REST API through Envoy."""


@main.command(cls=ServerCommand)
def up(**options: Any) -> None:  # noqa: ANN401  as click hands them over
    """Serve REST and gRPC (server and Envoy).

    Without --model and --config it serves the demo model that ships with ovchat.
    """
    # A config file without models is a mistake in it.
    demo = not options["model"] and options["config"] is None
    if demo:
        options["model"] = (ModelSettings(name="demo", path=resource(_DEMO)),)
    # Once for all: servers and Envoy need not see the terminal that this process sees.
    options["log_format"] = decided_format(options["log_format"])
    settings = _checked(options)
    # The servers have the bound that Envoy has, whatever becomes of the models' folders.
    options["max_request_bytes"] = settings.max_request_bytes
    _end_on_ctrl_c()
    configure_logs(settings.log_level, settings.log_format)
    raise_limit()
    _warn(settings)
    if demo:
        logger.info("no model is given: serving the demo model; --model NAME=PATH serves another")
    setproctitle("ovchat up")
    settings = _with_folders(settings)
    # Only what a command needs is loaded: an engine's libraries take a while.
    from ovchat_server.launch.up import run_up  # noqa: PLC0415

    command = [sys.executable, "-m", "ovchat_server", "serve", *arguments_of(options)]
    sys.exit(asyncio.run(run_up(settings, command)))


@main.command(cls=ServerCommand)
def serve(**options: Any) -> None:  # noqa: ANN401
    """Serve gRPC alone (server without Envoy)."""
    settings = _checked(options)
    _end_on_ctrl_c()
    configure_logs(settings.log_level, settings.log_format, options["server_number"])
    raise_limit()
    if options["servers"] is None:
        # Otherwise `ovchat up`, which started this, has warned.
        _warn(settings)
    setproctitle("ovchat server")
    settings = _with_folders(settings)
    if settings.tls:
        # Or gRPC, once it is loaded, writes lines of its own about each handshake that fails, and
        # anybody can make one fail.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from ovchat_server.app import serve  # noqa: PLC0415
    from ovchat_server.start_error import StartError  # noqa: PLC0415

    try:
        asyncio.run(serve(settings))
    except (StartError, ModelFilesError) as error:
        _end_with(error)


@main.command(params=[CACHE_DIR])
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--weights",
    type=click.Choice(list(WeightForm), case_sensitive=False),
    default=WeightForm.AUTO,
    show_default="auto",
    help="What to keep the weights in: 8 bits, the file's own form, or the faster of both.",
)
# How who serves the file logs.
@click.option("--log-level", default="info", hidden=True)
@click.option("--log-format", default="text", hidden=True)
def convert(
    file: Path, weights: WeightForm, cache_dir: Path, log_level: str, log_format: str
) -> None:
    """Convert a GGUF file and print the folder that it became."""
    _end_on_ctrl_c()
    configure_logs(log_level, log_format)
    setproctitle("ovchat convert")
    turn_off_telemetry()
    from ovchat_server.conversion.command import convert_file  # noqa: PLC0415

    try:
        click.echo(convert_file(file, weights, cache_dir))
    except ConversionError as error:
        _end_with(error)


def _checked_address(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^/:\s]+):[0-9]{1,5}", value):
        raise click.UsageError(f"ADDRESS must be HOST:PORT, such as {_ADDRESS}, got {value!r}")
    return value


@main.command()
@click.argument("address", default=_ADDRESS, callback=_checked_address)
@click.option(
    "--api-key",
    metavar="KEY",
    envvar="OVCHAT_API_KEY",
    help="Key, where the server wants one; OVCHAT_API_KEY shows it to nobody who lists processes.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=2.0,
    show_default=True,
    help="Time between two questions, over which rates are taken.",
)
@click.option("--once", is_flag=True, help="Print the figures of one interval, and end.")
@with_client_tls
def top(
    address: str, api_key: str | None, interval: float, *, once: bool, **tls: Path | None
) -> None:
    """Show live what a server does; q ends it.

    ADDRESS is HOST:PORT of its gRPC or of Envoy, by default 127.0.0.1:9000. Where the output is no
    terminal, it is printed once.
    """
    _end_on_ctrl_c()
    setproctitle("ovchat top")
    from ovchat_server.top.client import MetricsClient, TopError  # noqa: PLC0415
    from ovchat_server.top.run import run  # noqa: PLC0415

    # Click's parameters have no types of their own.
    client = client_tls(**tls)  # type: ignore[arg-type]
    try:
        asyncio.run(run(MetricsClient(address, api_key, client), interval, once=once))
    except (TlsError, TopError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash, in ~/.bashrc:  eval "$(ovchat completion bash)"
    zsh, in ~/.zshrc:    eval "$(ovchat completion zsh)"
    fish, in ~/.config/fish/config.fish:  ovchat completion fish | source
    """  # noqa: D301  click's mark for lines that it must not join is a backspace
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    if kind := get_completion_class(shell):
        click.echo(kind(main, {}, "ovchat", "_OVCHAT_COMPLETE").source())


main.add_command(keys)
main.add_command(tls)


def _checked(options: dict[str, Any]) -> Settings:
    """Return the settings of a command's options, with all checked that can be without starting."""
    settings = settings_from(options)
    try:
        check_paths(settings.models)
    except ModelFilesError as error:
        raise click.ClickException(str(error)) from error
    return settings


def _warn(settings: Settings) -> None:
    of_tls = settings.tls.warnings() if settings.tls else ()
    for message in (*unknown_variables(os.environ), *of_tls):
        logger.warning(message)
    warn_if_few()


def _with_folders(settings: Settings) -> Settings:
    """Return settings without GGUF files, which are converted where they are not yet.

    In a process of its own: it takes the memory of all weights, and the engine's libraries.
    """

    def converted(file: Path, form: WeightForm) -> Path:
        command = [sys.executable, "-m", "ovchat_server", "convert", str(file)]
        options = [f"--weights={form}", f"--cache-dir={settings.cache_dir}"]
        options += [f"--log-level={settings.log_level}", f"--log-format={settings.log_format}"]
        program = Program([*command, *options])
        ended = subprocess.run(program.tied(), stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
        if ended.returncode:
            # It has said why.
            sys.exit(1)
        return Path(ended.stdout.strip())

    return with_folders(settings, converted)


def _end_with(error: Exception) -> NoReturn:
    """End the process with its last line: from its first one on, all that it says is a log."""
    logger.error(str(error))
    sys.exit(1)


def _end_on_ctrl_c() -> None:
    """Let Ctrl-C end the process until the command takes it over; nothing runs by then."""
    # Python's own way is an exception, which is lost where it is raised in a callback of an import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
