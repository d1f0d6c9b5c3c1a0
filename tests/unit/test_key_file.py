"""The lines of a file of API keys."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from typing import TYPE_CHECKING

import pytest

from ovchat_server.config_file import SettingError
from ovchat_server.domain.identity import ApiKey, KeyRing, KeyRules
from ovchat_server.keys.key_file import read_keys
from ovchat_server.keys.new_key import add_line, new_key
from ovchat_server.keys.watch import watch_keys

if TYPE_CHECKING:
    from pathlib import Path


def sha(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


HEX = sha("k").hex()
LONG = "a-key-without-a-name"
UNNAMED = ApiKey(HEX[:8], (sha("k"),))
RULES = KeyRules(("demo", "house/*"), 60, 20_000, 4, -5)
ALL_RULES = (
    "models=demo,house/* requests_per_minute=60 tokens_per_minute=20000 concurrent_requests=4 "
    "priority=-5"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("k", UNNAMED),
        ("  k  ", UNNAMED),
        (f"{LONG} # of the first team", ApiKey(sha(LONG).hex()[:8], (sha(LONG),))),
        (f"sha256:{HEX}", UNNAMED),
        ("ann k", ApiKey("ann", (sha("k"),))),
        (f"ann\tsha256:{HEX.upper()}", ApiKey("ann", (sha("k"),))),
        ("ann k,l", ApiKey("ann", (sha("k"), sha("l")))),
        (f"ann@team-1 k {ALL_RULES} # hers", ApiKey("ann@team-1", (sha("k"),), RULES)),
    ],
)
def test_a_line_is_a_key_with_its_name_and_rules(file: Path, line: str, key: ApiKey) -> None:
    file.write_text(f"# ours\n\n{line}\n")
    assert read_keys(file) == (key,)


SECRET = "sk-secret"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (f"{SECRET}/x y", "does not begin with a name"),
        ("ann sha256:12", "has no 64 hexadecimal digits behind sha256:"),
        (f"ann {SECRET},", "has a comma without a key before or behind it"),
        ("ann models=demo", "has no key between its name and its settings"),
        (f"ann k {SECRET}", "has something behind its key that is no setting: there are models,"),
        ("ann k models", "has something behind its key that is no setting"),
        ("ann k request_per_minute=1", "is no setting; did you mean requests_per_minute?"),
        ("ann k models=,", "names no model in models="),
        ("ann k tokens_per_minute=0", "tokens_per_minute must be a whole number of at least 1"),
        ("ann k concurrent_requests=two", "concurrent_requests must be a whole number"),
        ("ann k priority=1", "priority must be a whole number from -2147483648 to 0"),
        ("ann k priority=-1 priority=-2", "says priority twice"),
        (f"bob {SECRET}", "has the name of line 1"),
        ("carl x", "has the key of line 1"),
        (f"carl y,sha256:{sha('x').hex()}", "has the key of line 1"),
        (f"carl # {SECRET}", "may be a name whose key is behind the #"),
        (f"ann k requests_per_minute={SECRET}", "requests_per_minute must be a whole number"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(file: Path, line: str, complaint: str) -> None:
    file.write_text(f"bob x\n# ours\n{line}\nann a b\n")
    with pytest.raises(SettingError) as caught:
        read_keys(file)
    message = caught.value.format_message()
    of_line_3 = message.partition("line 3 ")[2].partition("; line 4")[0]
    assert complaint in of_line_3
    assert "line 4 has something behind its key" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("rules", "identifiers", "allowed"),
    [
        (KeyRules(), ("anything",), True),
        (KeyRules(("demo",)), ("demo",), True),
        (KeyRules(("demo",)), ("gpt-4o", "demo"), True),
        (KeyRules(("house/*",)), ("house/big",), True),
        (KeyRules(("demo", "house/*")), ("demo-vision",), False),
    ],
)
def test_models_are_allowed_by_any_of_their_ids(
    rules: KeyRules, identifiers: tuple[str, ...], *, allowed: bool
) -> None:
    assert rules.allow(*identifiers) is allowed


def test_a_key_that_is_being_replaced_counts_beside_the_new_one() -> None:
    ring = KeyRing([ApiKey("ann", (sha("old"), sha("new")))])
    assert [found and found.name for found in map(ring.find, ("old", "new", "other"))] == [
        "ann",
        "ann",
        None,
    ]


def test_a_new_key_is_in_its_file_as_a_hash_only(file: Path) -> None:
    key, line = new_key("ann")
    other, other_line = new_key("bob")
    file.write_text("# none yet")
    file.chmod(0o600)
    add_line(file, "ann", line)
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(file.read_text().rstrip())
    add_line(file, "bob", other_line)
    assert key not in file.read_text()
    ring = KeyRing(read_keys(file))
    assert [found and found.name for found in map(ring.find, (key, other))] == ["ann", "bob"]
    with pytest.raises(SettingError, match="has a key called 'ann' already"):
        add_line(file, "ann", line)


async def test_a_file_that_changes_is_read_again_unless_it_is_wrong(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("ann k\n")
    file.chmod(0o644)
    ring = KeyRing(read_keys(file))

    async def until(names: list[str], message: str) -> None:
        while [key.name for key in ring.keys] != names or message not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    caplog.set_level(logging.INFO)
    watching = asyncio.create_task(watch_keys(file, ring, interval=0.001))
    try:
        await until(["ann"], "every user of this machine can read the API keys")
        file.write_text("bob k\n")
        await until(["bob"], "API keys that are no longer valid: ann")
        for wrong, message in (("x y z\n", "line 1 has something"), ("", "holds no key")):
            file.write_text(wrong)
            await until(["bob"], message)
        file.unlink()
        await until(["bob"], "cannot be read")
        # As editors and Kubernetes replace files.
        file.with_name("next").write_text("carl k\n")
        os.replace(file.with_name("next"), file)  # noqa: PTH105
        await until(["carl"], "API keys that are valid from now on: carl")
    finally:
        watching.cancel()
