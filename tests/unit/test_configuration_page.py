"""docs/configuration.md is what its script makes, and its sample has every key and default."""

from __future__ import annotations

import re
import tomllib

from docs import configuration_page
from ovchat_server.config_tables import LIMITS, MODELS, PROVIDERS, ROUTES, STORED_RESPONSES
from ovchat_server.domain.limits import Limits
from ovchat_server.engine.contract.generation_spec import DEFAULT_KV_BLOCKS
from ovchat_server.options import SERVER, SETTINGS
from ovchat_server.provider_settings import ProviderSettings
from ovchat_server.settings import ModelSettings, StoredResponsesSettings

PAGE = configuration_page.PAGE.read_text()
[TEXT] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SAMPLE = tomllib.loads(TEXT)


def test_the_page_is_what_make_gen_writes() -> None:
    assert configuration_page.page() == PAGE


def test_the_sample_has_every_key() -> None:
    found = tomllib.loads(re.sub("^# ", "", TEXT, flags=re.MULTILINE))
    [model] = found["models"]
    [provider], [route] = found["providers"], found["routes"]
    tables = [found["server"], found["limits"], found["stored_responses"], model, provider, route]
    declared = [SERVER, LIMITS, STORED_RESPONSES, MODELS, PROVIDERS, ROUTES]
    assert list(map(set, tables)) == list(map(set, declared))


def test_the_samples_values_are_the_defaults() -> None:
    defaults = {setting.name: setting.default for setting in SETTINGS}
    server = SAMPLE["server"]
    assert server == {name: defaults[name] for name in server}
    assert Limits(**SAMPLE["limits"]) == Limits()
    assert StoredResponsesSettings(**SAMPLE["stored_responses"]) == StoredResponsesSettings()
    [table] = SAMPLE["models"]
    assert table.pop("kv_blocks") == DEFAULT_KV_BLOCKS
    assert ModelSettings(**table) == ModelSettings(name="demo", path=table["path"])
    [table] = SAMPLE["providers"]
    named = {key: table[key] for key in ("name", "base_url")}
    assert ProviderSettings(**table) == ProviderSettings(**named)
