"""Reading a file of API keys, one per line.

    # name  key, or its SHA-256   what it may do, if not everything
    alice   sk-f3a9c0...
    bob     sha256:9f86d081...    models=demo,house/* requests_per_minute=60
    sk-77ab...

A key alone in its line is called by the first digits of its SHA-256. Several keys with commas
between them are one: both count while a key is replaced by another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from ovchat_server.config_file import SettingError, read_text
from ovchat_server.domain.identity import ApiKey, KeyRules, digest
from ovchat_server.near_names import did_you_mean
from ovchat_server.setting_values import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
HASHED: Final = "sha256:"
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
_AMOUNT: Final = Annotated[int, Meta(ge=1)]
# Those of KeyRules whose values are numbers.
_NUMBERS: Final = {
    "requests_per_minute": _AMOUNT,
    "tokens_per_minute": _AMOUNT,
    "concurrent_requests": _AMOUNT,
    "priority": Annotated[int, Meta(ge=-(2**31), le=0)],
}
_SETTINGS: Final = ("models", *_NUMBERS)


def read_keys(path: Path) -> tuple[ApiKey, ...]:
    """Return the keys of a file.

    Raises:
        SettingError: It cannot be read, lines of it are wrong, or it holds no keys.
    """
    keys: dict[str, ApiKey] = {}
    lines: dict[str, int] = {}
    wrong = []
    for number, words in _lines(read_text(path)):
        try:
            key = _key(words)
        except ValueError as error:
            # It never has what the line says, which may be a key.
            wrong.append(f"line {number} {error}")
            continue
        if key.name in keys:
            wrong.append(f"line {number} has the name of line {lines[key.name]}")
        keys[key.name], lines[key.name] = key, number
    if wrong:
        raise SettingError(f"--api-key-file {path}: {'; '.join(wrong)}")
    if not keys:
        # Or a file that was emptied by mistake would open the server to everybody.
        raise SettingError(f"--api-key-file {path} holds no key")
    return tuple(keys.values())


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line that has some, without its comment."""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
        if words[:comment]:
            yield number, words[:comment]


def _key(words: list[str]) -> ApiKey:
    """Return the key of a line.

    Raises:
        ValueError: It is wrong: completes "line 7 ...".
    """
    if len(words) == 1:
        [alone] = words
        digests = _digests(alone)
        return ApiKey(digests[0].hex()[:8], digests)
    name, key, *settings = words
    if not NAME.fullmatch(name):
        raise ValueError(
            "does not begin with a name, of letters, digits and . _ - @ (a key has no spaces)"
        )
    if "=" in key and key.partition("=")[0] in _SETTINGS:
        raise ValueError("has no key between its name and its settings")
    rules: dict[str, Any] = {}
    for setting in settings:
        option, value = _setting(setting)
        if option in rules:
            raise ValueError(f"says {option} twice")
        rules[option] = value
    return ApiKey(name, _digests(key), KeyRules(**rules))


def _digests(keys: str) -> tuple[bytes, ...]:
    return tuple(map(_digest, keys.split(",")))


def _digest(key: str) -> bytes:
    if not key:
        raise ValueError("has a comma without a key before or behind it")
    if not key.startswith(HASHED):
        return digest(key)
    hexadecimal = key.removeprefix(HASHED)
    if not _HEX.fullmatch(hexadecimal):
        raise ValueError(f"has no 64 hexadecimal digits behind {HASHED}")
    return bytes.fromhex(hexadecimal)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if name not in _SETTINGS or not equals:
        # Not echoed: it may be a part of a key.
        meant = did_you_mean(name, _SETTINGS) or f": there are {', '.join(_SETTINGS)}"
        raise ValueError(f"has something behind its key that is no setting{meant}")
    if name == "models":
        models = tuple(filter(None, value.split(",")))
        if not models:
            raise ValueError("names no model in models=")
        return name, models
    try:
        return name, read_value(_NUMBERS[name], value, text=True)
    except ValueError as error:
        raise ValueError(f"is wrong: {name} {error}") from error
