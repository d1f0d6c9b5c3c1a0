"""The tables of the config file: the keys of each, with what reads a value."""

from __future__ import annotations

import contextlib
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import msgspec

from ovchat_server.chat.dialects.registry import reasoning_parsers, tool_parsers
from ovchat_server.domain.limits import DEEPEST, Limits
from ovchat_server.near_names import did_you_mean, did_you_mean_path
from ovchat_server.provider_settings import BaseUrl, ProviderSettings, VariableName
from ovchat_server.setting_values import read_value, wrong
from ovchat_server.settings import ModelSettings, RouteSettings, StoredResponsesSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    Readers: TypeAlias = Mapping[str, Callable[..., Any]]
    """The keys of a table, each with what reads its value, as `read_value` does."""

# What to do with a key that stands elsewhere than in its table.
HOMES = {
    "server": "belongs to the server: set it in the [server] table",
    "limits": "is a limit of requests: set it in the [limits] table",
    "stored_responses": "bounds stored responses: set it in the [stored_responses] table",
    "models": "belongs to a model: set it in its [[models]] table",
    "providers": "belongs to a provider: set it in its [[providers]] table",
    "routes": "belongs to a route: set it in its [[routes]] table",
    "aliases": "is another id of a model: set it in the [aliases] table",
}
_LIMIT = Annotated[int, msgspec.Meta(ge=1)]
_DEPTH = Annotated[int, msgspec.Meta(ge=1, le=DEEPEST)]


def _parser(parsers: Callable[[], list[str]], value: object, **_: object) -> object:
    if value not in (names := parsers()):
        raise wrong("one of " + ", ".join(names), value, names)
    return value


def _url(value: object, **_: object) -> str:
    if isinstance(value, str) and "@" in value:
        # It may hold a password: it is not shown.
        raise ValueError("must have no user and no password: a key goes into api_key_env")
    url: str = read_value(BaseUrl, value)
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname and parts.port != 0:
            return url
    raise wrong("a URL with a host, such as https://api.example.com/v1", value)


def _variable(value: object, **_: object) -> str:
    try:
        name: str = read_value(VariableName, value)
    except ValueError:
        # It may be a key: it is not shown.
        raise ValueError("must be the name of an environment variable, not a key itself") from None
    return name


def _file(value: object, *, folder: Path, **_: object) -> Path:
    path: Path = read_value(Path, value, folder=folder)
    if not path.is_file():
        raise wrong("a file", value, but=", which does not exist" + did_you_mean_path(path))
    return path


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
PROVIDERS: Readers = {
    **_readers(ProviderSettings),
    "base_url": _url,
    "api_key_env": _variable,
    "ca_file": _file,
}
ROUTES: Readers = _readers(RouteSettings)
# Any id may be one; see ConfigFile.aliases.
ALIASES: Readers = {}
# What stands in the file alone: neither flags nor variables.
FILE_ONLY: Mapping[str, Readers] = {
    "models": MODELS,
    "providers": PROVIDERS,
    "routes": ROUTES,
    "aliases": ALIASES,
    "limits": LIMITS,
    "stored_responses": STORED_RESPONSES,
}


def belongs(key: str, tables: Mapping[str, Readers]) -> str:
    """Return which of some tables a key belongs into; nothing where none knows it."""
    if key in HOMES:
        # A provider has models, but who writes that elsewhere hardly means them.
        return ""
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
