"""The commands that make credentials: API keys, and certificates for trying."""

from __future__ import annotations

from pathlib import Path

import click

from ovchat_server.tls.errors import TlsError


@click.group()
def tls() -> None:
    """Certificates for TLS."""


@tls.command("dev-cert")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    default="tls",
    show_default=True,
    help="Where to write them.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Name or address that clients use, besides this machine's own. Repeatable.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def dev_cert(out: Path, hosts: tuple[str, ...], *, force: bool) -> None:
    """Make certificates for trying: of an authority, a server and a client."""
    from ovchat_server.tls.dev_certificates import write_dev_certificates  # noqa: PLC0415

    try:
        click.echo(write_dev_certificates(out, hosts, force=force), nl=False)
    except TlsError as error:
        raise click.ClickException(str(error)) from error


@click.group()
def keys() -> None:
    """Make API keys."""


@keys.command("new")
@click.argument("name")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Add its line to this file of keys; a server that has it in --api-key-file takes it over.",
)
def new(name: str, file: Path | None) -> None:
    """Make an API key for NAME, and print it: the file has its SHA-256 alone.

    Without --file, the line for the file is printed behind it.
    """
    from ovchat_server.keys.new_key import add_line, new_key  # noqa: PLC0415

    key, line = new_key(name)
    if file is not None:
        add_line(file, name, line)
    click.echo(key)
    if file is None:
        click.echo(line)
