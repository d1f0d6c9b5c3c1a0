"""Reading the config file. What is wrong in it is told with its line."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from ovchat_server.config_tables import FILE_ONLY, belongs, suggestion
from ovchat_server.domain.limits import Limits
from ovchat_server.domain.models import PROVIDER
from ovchat_server.near_names import did_you_mean
from ovchat_server.provider_settings import READY_MADE, ProviderSettings
from ovchat_server.setting_values import read_value, shown
from ovchat_server.settings import ModelName, ModelSettings, RouteSettings, StoredResponsesSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ovchat_server.config_tables import Readers


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
        for index, values in enumerate(self._tables("models", "model")):
            title = f"[[models]] {values['name']!r}"
            if "path" not in values:
                raise self.fault(f"{title} has no path", "models", index)
            try:
                yield ModelSettings(**values)
            except ValueError as error:
                raise self.fault(f"{title}: {error}", "models", index) from error

    def providers(self) -> Iterator[ProviderSettings]:
        """Return the providers of the [[providers]] tables.

        Raises:
            SettingError: As for `server`, a name is missing or there twice, a base URL is missing,
                an option is for another kind, or the environment has no API key although it should.
        """
        for index, given in enumerate(self._tables("providers", "provider")):
            name = given["name"]
            title = f"[[providers]] {name!r}"
            values = {**READY_MADE.get(name, {}), **given}
            if "base_url" not in values:
                known = ", ".join(READY_MADE)
                fault = f"{title} has no base_url; ready-made, without one, are {known}"
                raise self.fault(fault, "providers", index)
            if variable := values.get("api_key_env"):
                # Somebody's key, if it is no usual name of a variable: it is not shown.
                which = variable if variable.isupper() else "that its api_key_env names"
                key = os.environ.get(variable, "").strip()
                if not key or not (key.isascii() and key.isprintable()):
                    wrong = "holds what is no key" if key else "is not set"
                    fault = f"{title} takes its API key from the variable {which}, which {wrong}"
                    raise self.fault(fault, "providers", index)
            try:
                yield ProviderSettings(**values)
            except ValueError as error:
                raise self.fault(f"{title}: {error}", "providers", index) from error

    def routes(
        self, models: Collection[str], providers: Collection[str]
    ) -> Iterator[RouteSettings]:
        """Return the routes of the [[routes]] tables.

        Args:
            models: The names of the models that are served here.
            providers: The names of the providers.

        Raises:
            SettingError: As for `server`, a name or the models are missing or there twice, or a
                model is none.
        """
        for index, values in enumerate(self._tables("routes", "route")):
            title = f"[[routes]] {values['name']!r}"
            if "models" not in values:
                raise self.fault(f"{title} has no models", "routes", index)
            for model in values["models"]:
                if fault := _no_model(model, models, providers):
                    raise self.fault(f"{title}: {fault}", "routes", index, "models")
            try:
                yield RouteSettings(**values)
            except ValueError as error:
                raise self.fault(f"{title}: {error}", "routes", index) from error

    def aliases(self, models: Collection[str], providers: Collection[str]) -> Mapping[str, str]:
        """Return the models of the [aliases] table by the ids that stand for them.

        Args:
            models: The names of the models that are served here, and of routes.
            providers: The names of the providers.

        Raises:
            SettingError: An id is none or names a model already, or a model is none.
        """
        aliases = self.content.get("aliases", {})
        if not isinstance(aliases, dict):
            raise self.fault(f"aliases must be a table, [aliases], got {shown(aliases)}", "aliases")
        for alias, model in aliases.items():
            fault = _no_alias(alias, models)
            if not fault and isinstance(model, str) and model in aliases:
                fault = f"{model!r} is an alias itself: name the model"
            if fault := fault or _no_model(model, models, providers):
                raise self.fault(f"[aliases] {alias!r}: {fault}", "aliases", alias)
        return aliases

    def fault(self, message: str, *keys: str | int) -> SettingError:
        """Return the error of what stands at some keys, with its line."""
        return SettingError(f"{self.path}:{self._line(keys)}: {message}")

    def _table(self, name: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            raise self.fault(f"{name} must be a table, [{name}], got {shown(table)}", name)
        return self._values(table, f"[{name}]", name)

    def _tables(self, name: str, what: str) -> Iterator[dict[str, Any]]:
        """Read the values of tables that have names."""
        tables = self.content.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.fault(f"{name} must be tables, each [[{name}]]", name)
        names: set[str] = set()
        for index, table in enumerate(tables):
            title = f"[[{name}]]"
            if isinstance(table.get("name"), str):
                title += f" {table['name']!r}"
            values = self._values(table, title, name, index)
            if "name" not in values:
                raise self.fault(f"{title} has no name", name, index)
            if values["name"] in names:
                raise self.fault(f"{title}: there is a {what} of this name already", name, index)
            names.add(values["name"])
            yield values

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
        if key in ("model", "models") and "models" not in own:
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


def _no_alias(alias: str, models: Collection[str]) -> str:
    """Return what is wrong with an alias, if anything."""
    if alias in models:
        return "there is a model or a route of this name already"
    if alias.startswith(f"{PROVIDER}/"):
        return f"leave {PROVIDER}/ out: models are asked for with and without it"
    try:
        read_value(ModelName, alias)
    except ValueError as error:
        return f"the id {error}"
    return ""


def _no_model(model: object, models: Collection[str], providers: Collection[str]) -> str:
    """Return what is wrong with the id of a model, if anything."""
    if isinstance(model, dict):
        return "an id with a dot stands in quotes"
    if not isinstance(model, str):
        return f"must be the id of a model, got {shown(model)}"
    name = model.removeprefix(f"{PROVIDER}/")
    if name in models or name.partition("/")[0] in providers:
        return ""
    return f"there is no model {name!r}{did_you_mean(name, models)}"
