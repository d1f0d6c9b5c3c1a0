from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.api.limits import DEFAULT_LIMITS
from ovchat_server.settings import ModelSettings, Settings
from tests import effort

if TYPE_CHECKING:
    from collections.abc import Callable

effort.load_profile()

ROOT = Path(__file__).resolve().parent.parent
# Batched and alone must give the same: no rounding that depends on the batch.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def demo() -> ModelSettings:
    return ModelSettings(name="demo", path=ROOT / "models/demo", properties=EXACT)


@pytest.fixture(scope="session")
def successor() -> ModelSettings:
    return ModelSettings(name="successor", path=ROOT / "models/successor", properties=EXACT)


def settings_of(*models: ModelSettings, **changes: Any) -> Settings:
    """Those of a server on ports of its own choice."""
    settings = Settings(
        models=models,
        host="127.0.0.1",
        grpc_port=0,
        grpc_socket=None,
        rest_port=0,
        admin_port=0,
        envoy_path=None,
        replicas=1,
        drain_timeout=5.0,
        request_timeout=0,
        idle_timeout=0,
        max_request_bytes=8 << 20,
        max_concurrent_streams=1000,
        limits=DEFAULT_LIMITS,
        strict_parameters=False,
        api_keys=(),
        log_level="info",
    )
    return dataclasses.replace(settings, **changes)


def model_table(model: ModelSettings) -> str:
    """A model's table of a config file; its numbers are exact."""
    fields: dict[str, Any] = {**msgspec.to_builtins(model, enc_hook=str), "properties": None}
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None]
    properties = ", ".join(f'{key} = "{value}"' for key, value in EXACT.items())
    return "\n".join(["\n[[models]]", *lines, f"properties = {{ {properties} }}", ""])


@pytest.fixture(scope="session")
def make_settings() -> Callable[..., Settings]:
    return settings_of
