"""Reading the config file and the file of API keys."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ovchat_server.api.limits import Limits
from ovchat_server.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


def file_models(path: Path | None) -> Iterator[ModelSettings]:
    """Read the [[models]] of a config file, whose paths are relative to it.

    Raises:
        click.UsageError: The file is not TOML, or a model is invalid.
    """
    if path is None:
        return
    try:
        models = msgspec.convert(
            read_file(path).get("models", []), list[ModelSettings], dec_hook=_to_path
        )
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{path}: models: {error}") from error
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"{path}: two models are called {name!r}")
    for model in models:
        yield msgspec.structs.replace(model, path=path.parent / model.path)


def file_limits(path: Path | None) -> Limits:
    """Read the [limits] of a config file.

    Raises:
        click.UsageError: The file is not TOML, or a limit is unknown or invalid.
    """
    table = {} if path is None else read_file(path).get("limits", {})
    try:
        limits = msgspec.convert(table, Limits)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{path}: limits: {error}") from error
    for name in table.keys() - {field.name for field in dataclasses.fields(Limits)}:
        raise click.UsageError(f"{path}: there is no limit {name!r}")
    return limits


def read_keys(path: Path | None) -> tuple[str, ...]:
    """Read the keys of an API key file: one per line, without comments and empty lines.

    Raises:
        click.UsageError: The file cannot be read, or has no key.
    """
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


def read_file(path: Path) -> dict[str, Any]:
    """Read the tables of a config file.

    Raises:
        click.UsageError: The file is not TOML, or has unknown tables.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} is not TOML: {error}") from error
    for key in content.keys() - {"server", "limits", "models"}:
        raise click.UsageError(f"{path}: there is no table {key!r}, only server, limits and models")
    return content
