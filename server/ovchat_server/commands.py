"""How commands print: the fault first, and --help in sections."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ovchat_server.config_file import SettingError
from ovchat_server.config_tables import FILE_ONLY, belongs, suggestion
from ovchat_server.option_types import Setting
from ovchat_server.options import SETTINGS, options_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MORE = """\b
Each option is an environment variable, too (--rest-port: OVCHAT_REST_PORT), and,
but for --config and --model, a key of the file's [server] table (rest_port).
A flag wins over the environment, which wins over the file.

\b
The options of a model (kv_blocks, device, ...) are set in --config:
  [[models]]
  name = "demo"
  path = "models/demo"
  kv_blocks = 1024
docs/configuration.md lists them."""


class Command(click.Command):
    """Says of an option that it does not have whose it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(self._unknown(ctx, error.option_name), ctx) from error
        except click.BadOptionUsage as error:
            error.ctx = ctx
            raise

    def _unknown(self, ctx: click.Context, flag: str) -> str:
        key = flag.lstrip("-").replace("-", "_")
        for setting in SETTINGS:
            if setting.name == key and self.name not in setting.commands:
                return f"{flag} is an option of `ovchat {setting.commands[0]}`"
        if home := belongs(key, FILE_ONLY):
            return f"{flag}: {home} of --config"
        flags = [
            name.removeprefix("--").replace("-", "_")
            for option in self.get_params(ctx)
            if isinstance(option, click.Option) and not option.hidden
            for name in (*option.opts, *option.secondary_opts)
        ]
        meant = suggestion(key, flags, FILE_ONLY, lambda name: f"--{name.replace('_', '-')}")
        command = "ovchat" if isinstance(self, click.Group) else f"ovchat {self.name}"
        return f"{flag} is no option of `{command}`{meant}"


class Commands(Command, click.Group):
    """Prints what is wrong before how it is used."""

    command_class = Command

    def make_context(self, *args: Any, **attributes: Any) -> click.Context:  # noqa: ANN401
        """Read the arguments that are the group's own."""
        with _fault_first():
            return super().make_context(*args, **attributes)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run a command."""
        with _fault_first():
            return super().invoke(ctx)


class ServerCommand(Command):
    """A command that serves."""

    # Left for `parse_args`, which knows better what was meant.
    allow_extra_args = True

    def __init__(self, name: str, **attributes: Any) -> None:  # noqa: ANN401
        """Give it its options."""
        super().__init__(name, epilog=_MORE, **attributes)
        self.params = options_of(name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            # A shell asks for completions of an unfinished line.
            return rest
        if rest:
            raise click.UsageError(_unexpected(rest[0]), ctx)
        if _is_flag(ctx, "grpc_port") and "grpc_socket" in ctx.params:
            _choose_port(ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            name = option.section if isinstance(option, Setting) else "Other"
            if record := option.get_help_record(ctx):
                sections.setdefault(name, []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _is_flag(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _choose_port(ctx: click.Context) -> None:
    """Let a flag for the port win over a socket that the environment or the file says."""
    if not _is_flag(ctx, "grpc_socket"):
        ctx.params["grpc_socket"] = None
    # `ovchat up` adds the socket of each of its servers to the flags that it has for all.
    elif ctx.params["servers"] is None:
        raise click.UsageError("--grpc-port and --grpc-socket exclude each other", ctx)


def _unexpected(argument: str) -> str:
    """Return what is wrong with an argument of no option: most likely it is a model."""
    path = Path(argument.partition("=")[2] or argument)
    with contextlib.suppress(OSError):
        if path.exists():
            name = path.resolve().name.removesuffix(".gguf")
            named = argument if "=" in argument else f"{name}={argument}"
            return f"{argument}: did you mean --model {named}?"
    return f"unexpected argument {argument}"


class _Mistake(click.UsageError):
    """What is wrong with a command line."""

    def show(self, file: Any = None) -> None:  # noqa: ANN401
        """Print it."""
        context, self.ctx = self.ctx, None
        super().show(file)
        if context is not None:
            what = "commands" if isinstance(context.command, click.Group) else "options"
            click.echo(f"`{context.command_path} --help` lists the {what}.", file=file, err=True)


@contextlib.contextmanager
def _fault_first() -> Iterator[None]:
    """Have what is wrong printed before how the command is used."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        context = None if isinstance(error, SettingError) else error.ctx
        raise _Mistake(error.format_message(), context) from error
