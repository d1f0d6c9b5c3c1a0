"""The README's config file has every key, with its default."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from ovchat_server.config_file import LIMITS, MODELS
from ovchat_server.domain.limits import Limits
from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from ovchat_server.options import SERVER, SETTINGS
from ovchat_server.settings import ModelSettings
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

README = (ROOT / "README.md").read_text()
[TEXT] = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
_, *PARTS = re.split(r"^\[.*\n", TEXT, flags=re.MULTILINE)
TABLES = dict(zip(("server", "limits", "models"), PARTS, strict=True))


@pytest.mark.parametrize(
    ("table", "keys"), [("server", SERVER), ("limits", LIMITS), ("models", MODELS)]
)
def test_every_key_is_there_once(table: str, keys: Mapping[str, object]) -> None:
    given = re.findall(r"^(?:# )?(\w+) =", TABLES[table], re.MULTILINE)
    assert sorted(given) == sorted(keys)


def test_values_are_the_defaults() -> None:
    given = tomllib.loads(TEXT)
    defaults = {setting.name: setting.default for setting in SETTINGS}
    assert given["server"] == {name: defaults[name] for name in given["server"]}
    assert Limits(**given["limits"]) == Limits()
    [table] = given["models"]
    assert table.pop("kv_blocks") == DEFAULT_KV_BLOCKS
    assert ModelSettings(**table) == ModelSettings(name="demo", path=table["path"])
