"""Reading the config file. What is wrong in it is told with its line."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import click
import msgspec

from ovchat_server.chat.dialects.registry import reasoning_parsers, tool_parsers
from ovchat_server.domain.limits import DEEPEST, Limits
from ovchat_server.near_names import did_you_mean
from ovchat_server.setting_values import read_value, shown, wrong
from ovchat_server.settings import ModelSettings, StoredResponsesSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    Readers: TypeAlias = Mapping[str, Callable[..., Any]]
    """The keys of a table, each with what reads its value, as `read_value` does."""

# What to do with a key that stands elsewhere than in its table.
HOMES = {
    "server": "belongs to the server: set it in the [server] table",
    "limits": "is a limit of requests: set it in the [limits] table",
    "stored_responses": "bounds stored responses: set it in the [stored_responses] table",
    "models": "belongs to a model: set it in its [[models]] table",
}
_LIMIT = Annotated[int, msgspec.Meta(ge=1)]
_DEPTH = Annotated[int, msgspec.Meta(ge=1, le=DEEPEST)]


class SettingError(click.UsageError):
    """A setting is wrong; the message says where it stands, and what it may be."""


def read_text(path: Path) -> str:
    """Return what a file holds.

    Raises:
        SettingError: It cannot be read, or is not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{path} is not text in UTF-8") from error


def _parser(parsers: Callable[[], list[str]], value: object, **_: object) -> object:
    if value not in (names := parsers()):
        raise wrong("one of " + ", ".join(names), value, names)
    return value


def _readers(table: type[msgspec.Struct]) -> Readers:
    fields = msgspec.structs.fields(table)
    return {field.name: partial(read_value, field.type) for field in fields}


LIMITS: Readers = {
    field.name: partial(read_value, _DEPTH if field.name == "max_json_depth" else _LIMIT)
    for field in dataclasses.fields(Limits)
}
STORED_RESPONSES: Readers = _readers(StoredResponsesSettings)
MODELS: Readers = {
    **_readers(ModelSettings),
    "tool_parser": partial(_parser, tool_parsers),
    "reasoning_parser": partial(_parser, reasoning_parsers),
}


# What stands in the file alone: neither flags nor variables.
FILE_ONLY: Mapping[str, Readers] = {
    "models": MODELS,
    "limits": LIMITS,
    "stored_responses": STORED_RESPONSES,
}


def belongs(key: str, tables: Mapping[str, Readers]) -> str:
    """Return which of some tables a key belongs into; nothing where none knows it."""
    return next((f"{key} {HOMES[name]}" for name, keys in tables.items() if key in keys), "")


def suggestion(
    key: str,
    own: Iterable[str],
    tables: Mapping[str, Readers],
    write: Callable[[str], str] = str,
) -> str:
    """Return "; did you mean ...?" for an unknown key: one like it of its place, or of a table.

    Args:
        key: The key.
        own: Those that its place knows; `write` says how they are written there.
        tables: The tables that it may be meant for.
        write: As above.
    """
    if meant := did_you_mean(key, own, write):
        return meant
    for name, keys in tables.items():
        if meant := did_you_mean(key, keys):
            return f"{meant} It {HOMES[name]}"
    return ""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config file that is TOML and has no other tables than it may.

    Attributes:
        path: Where it is; paths in it are relative to it.
        text: What it holds.
        content: The same as values.
        tables: The keys of each of its tables.
    """

    path: Path
    text: str
    content: Mapping[str, Any]
    tables: Mapping[str, Readers]

    @classmethod
    def read(cls, path: Path, server: Readers) -> Self:
        """Read a file.

        Args:
            path: Where it is.
            server: The keys of its [server] table.

        Raises:
            SettingError: It cannot be read, is not TOML, or has unknown tables.
        """
        text = read_text(path)
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingError(f"{path} is not TOML: {error}") from error
        file = cls(path, text, content, {"server": server, **FILE_ONLY})
        for key in content:
            if key not in file.tables:
                known = did_you_mean(key, file.tables) or f"; there are {', '.join(file.tables)}"
                home = belongs(key, file.tables) or f"there is no table {key!r}{known}"
                raise file.fault(home, key)
        return file

    @classmethod
    def empty(cls) -> Self:
        """Return what stands for no file: all defaults."""
        return cls(Path(), "", {}, FILE_ONLY)

    def server(self) -> Mapping[str, Any]:
        """Return the values of the [server] table.

        Raises:
            SettingError: It has unknown keys or wrong values.
        """
        return self._table("server")

    def limits(self) -> Limits:
        """Return the limits of the [limits] table.

        Raises:
            SettingError: As for `server`.
        """
        return Limits(**self._table("limits"))

    def stored_responses(self) -> StoredResponsesSettings:
        """Return the settings of the [stored_responses] table.

        Raises:
            SettingError: As for `server`.
        """
        return StoredResponsesSettings(**self._table("stored_responses"))

    def models(self) -> Iterator[ModelSettings]:
        """Return the models of the [[models]] tables.

        Raises:
            SettingError: As for `server`, or a name or path is missing or there twice.
        """
        tables = self.content.get("models", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.fault("models must be tables, each [[models]]", "models")
        names: set[str] = set()
        for index, table in enumerate(tables):
            name = table.get("name")
            title = f"[[models]] {name!r}" if isinstance(name, str) else "[[models]]"
            values = self._values(table, title, "models", index)
            for key in ("name", "path"):
                if key not in values:
                    raise self.fault(f"{title} has no {key}", "models", index)
            if name in names:
                raise self.fault(f"{title}: there is a model of this name already", "models", index)
            names.add(values["name"])
            try:
                yield ModelSettings(**values)
            except ValueError as error:
                raise self.fault(f"{title}: {error}", "models", index) from error

    def fault(self, message: str, *keys: str | int) -> SettingError:
        """Return the error of what stands at some keys, with its line."""
        return SettingError(f"{self.path}:{self._line(keys)}: {message}")

    def _table(self, name: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            raise self.fault(f"{name} must be a table, [{name}], got {shown(table)}", name)
        return self._values(table, f"[{name}]", name)

    def _values(
        self, table: Mapping[str, object], title: str, name: str, *index: int
    ) -> dict[str, Any]:
        """Read the values of a table."""
        own = self.tables[name]
        values = {}
        for key, value in table.items():
            if key not in own:
                raise self.fault(self._unknown(key, title, own), name, *index, key)
            try:
                values[key] = own[key](value, folder=self.path.parent)
            except ValueError as error:
                raise self.fault(f"{title}: {key} {error}", name, *index, key) from error
        return values

    def _unknown(self, key: str, title: str, own: Readers) -> str:
        if key in ("model", "models"):
            return f"{title}: models have [[models]] tables of their own"
        if home := belongs(key, self.tables):
            return f"{title}: {home}"
        return f"{title} has no option {key!r}{suggestion(key, own, self.tables)}"

    def _line(self, keys: tuple[str | int, ...]) -> int:
        """Return the line on which something begins.

        The TOML reader does not tell. So it reads more and more lines, until it is there.
        """
        lines = self.text.split("\n")
        whole = 0
        for count in range(1, len(lines) + 1):
            try:
                found: Any = tomllib.loads("\n".join(lines[:count]))
            except tomllib.TOMLDecodeError:
                # In the midst of a value of several lines.
                continue
            try:
                for key in keys:
                    found = found[key]
            except (LookupError, TypeError):
                whole = count
                continue
            break
        return whole + 1
