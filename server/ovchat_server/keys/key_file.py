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
    from pathlib import Path

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
HASHED: Final = "sha256:"
# Names of keys are public: a name must not become a key because the key behind it was taken out.
SHORTEST_ALONE: Final = 16
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
    keys = keys_in(path)
    if not keys:
        # Or a file that was emptied by mistake would open the server to everybody.
        raise SettingError(f"--api-key-file {path} holds no key")
    return keys


def keys_in(path: Path) -> tuple[ApiKey, ...]:
    """Return the keys of a file, which may have none; see read_keys."""
    keys: list[ApiKey] = []
    # Of names and digests.
    lines: dict[str | bytes, int] = {}
    wrong = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        words, comment = _words(line)
        if not words:
            continue
        try:
            key = _key(words, commented=comment)
        except ValueError as error:
            # It never has what the line says, which may be a key.
            wrong.append(f"line {number} {error}")
            continue
        if same := [lines[item] for item in key.digests if item in lines]:
            wrong.append(f"line {number} has the key of line {same[0]}")
        if key.name in lines:
            wrong.append(f"line {number} has the name of line {lines[key.name]}")
        lines |= dict.fromkeys((key.name, *key.digests), number)
        keys.append(key)
    if wrong:
        raise SettingError(f"--api-key-file {path}: {'; '.join(wrong)}")
    return tuple(keys)


def _words(line: str) -> tuple[list[str], bool]:
    """Return the words of a line without its comment, and whether it has one."""
    words = line.split()
    comment = next((at for at, word in enumerate(words) if word.startswith("#")), len(words))
    return words[:comment], comment < len(words)


def _key(words: list[str], *, commented: bool) -> ApiKey:
    """Return the key of a line.

    Raises:
        ValueError: It is wrong: completes "line 7 ...".
    """
    if len(words) == 1:
        [alone] = words
        if commented and len(alone) < SHORTEST_ALONE:
            raise ValueError(
                "may be a name whose key is behind the #: a key alone before a comment has at "
                f"least {SHORTEST_ALONE} characters"
            )
        return ApiKey.unnamed(_digests(alone))
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
        expected, _, _ = str(error).partition(", got ")
        raise ValueError(f"is wrong: {name} {expected}") from error
