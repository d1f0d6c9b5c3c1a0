from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ovchat_server.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.fixture(scope="session")
def make_settings() -> Callable[..., Settings]:
    def make(
        *models: ModelSettings, drain_timeout: float = 5.0, api_keys: tuple[str, ...] = ()
    ) -> Settings:
        return Settings(
            models=models,
            host="127.0.0.1",
            grpc_port=0,
            grpc_socket=None,
            rest_port=0,
            admin_port=0,
            envoy_path=None,
            replicas=1,
            drain_timeout=drain_timeout,
            max_request_bytes=8 << 20,
            strict_parameters=False,
            api_keys=api_keys,
            log_level="info",
        )

    return make
