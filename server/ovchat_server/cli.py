"""The command line."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import click
from setproctitle import setproctitle

from ovchat_server.options import arguments_of, settings_from, with_options
from ovchat_server.telemetry.logs import configure_logs


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ovchat")
def main() -> None:
    """Chat completions on OpenVINO GenAI: gRPC first, and OpenAI's REST API through Envoy."""


@main.command()
@with_options
def up(**options: Any) -> None:  # noqa: ANN401  as click hands them over
    """Serve REST and gRPC: the gRPC server and Envoy in front of it, until Ctrl-C."""
    settings = settings_from(options)
    _end_on_ctrl_c()
    configure_logs(settings.log_level)
    setproctitle("ovchat up")
    # Only what a command needs is loaded: an engine's libraries take a while.
    from ovchat_server.launch.up import run_up  # noqa: PLC0415

    command = [sys.executable, "-m", "ovchat_server", "serve", *arguments_of(options)]
    sys.exit(asyncio.run(run_up(settings, command)))


@main.command()
@with_options
def serve(**options: Any) -> None:  # noqa: ANN401
    """Serve gRPC alone, until Ctrl-C."""
    settings = settings_from(options)
    _end_on_ctrl_c()
    configure_logs(settings.log_level)
    setproctitle("ovchat server")
    from ovchat_server.app import StartError, serve  # noqa: PLC0415
    from ovchat_server.serving.model_folder import ModelFilesError  # noqa: PLC0415

    try:
        asyncio.run(serve(settings))
    except (StartError, ModelFilesError) as error:
        raise click.ClickException(str(error)) from error


def _end_on_ctrl_c() -> None:
    """Let Ctrl-C end the process until the command takes it over; nothing runs by then."""
    # Python's own way is an exception, which is lost where it is raised in a callback of an import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
