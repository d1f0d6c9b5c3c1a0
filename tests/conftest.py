from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.domain.limits import DEFAULT_LIMITS
from ovchat_server.settings import ModelSettings, Settings, StoredResponsesSettings
from tests import effort

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

effort.load_profile()

ROOT = Path(__file__).resolve().parent.parent
# Batched and alone must give the same: no rounding that depends on the batch.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
# A grammar that takes longer than its time is dropped where a call is not forced, and the answer
# looks wrong. On a busy machine none takes as long; tests of the time-out set their own.
GRAMMAR_TIMEOUT = 60.0
# What they test is one process: it fails again, or its test is wrong.
IN_ONE_PROCESS = ROOT / "tests/unit"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Have a worker tell of its tests without waiting for acknowledgements.

    Before each test pytest-rerunfailures asks the controller in small packets, which Nagle's
    algorithm holds back for 40 ms: minutes, over all tests.
    """
    if database := hasattr(config, "workerinput") and getattr(config, "failures_db", None):
        database.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """A test that hangs fails by itself, and the run goes on.

    pytest-timeout's signal raises in whatever coroutine runs, which may be one of gRPC's that logs
    it and goes on; so coroutines are ended by their own event loop, at the same bound. What neither
    of them ends, such as a test that swallows its cancellation, ends the run with all stacks
    (`faulthandler_timeout`).
    """
    for item in items:
        if item.path.is_relative_to(IN_ONE_PROCESS):
            item.add_marker(pytest.mark.flaky(reruns=0))
        if not isinstance(item, pytest.Function):
            continue
        own = item.get_closest_marker("timeout")
        seconds = float(own.args[0] if own else config.getini("timeout"))
        if hypothesis := getattr(item.obj, "hypothesis", None):
            holder, name = hypothesis, "inner_test"
        else:
            holder, name = item, "obj"
        if inspect.iscoroutinefunction(test := getattr(holder, name)):
            setattr(holder, name, bounded(test, seconds))
            item.add_marker(pytest.mark.timeout(0), append=False)


def bounded(
    test: Callable[..., Coroutine[Any, Any, None]], seconds: float
) -> Callable[..., Coroutine[Any, Any, None]]:
    """A test that is cancelled, and fails, after so many seconds."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        try:
            async with asyncio.timeout(seconds) as bound:
                await test(*args, **kwargs)
        except TimeoutError:
            if not bound.expired():
                raise
            # As pytest-timeout says it: such tests are not tried again.
            pytest.fail(f"Timeout (>{seconds}s) from tests/conftest.py")

    return run


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


def model_settings(name: str, **changes: Any) -> ModelSettings:
    """Those of a model of the repository."""
    shared = {"properties": EXACT, "grammar_timeout": GRAMMAR_TIMEOUT}
    return ModelSettings(name=name, **({"path": ROOT / "models" / name} | shared | changes))


@pytest.fixture(scope="session")
def demo() -> ModelSettings:
    return model_settings("demo")


@pytest.fixture(scope="session")
def successor() -> ModelSettings:
    # It calls none, and its prompts are to stay what its template writes.
    return model_settings("successor", tool_parser="none")


def settings_of(*models: ModelSettings, **changes: Any) -> Settings:
    """Those of a server on ports of its own choice."""
    settings = Settings(
        models=models,
        providers=(),
        routes=(),
        aliases={},
        host="127.0.0.1",
        grpc_port=0,
        grpc_socket=None,
        envoy_socket=None,
        egress=None,
        rest_port=0,
        admin_port=0,
        allowed_origins=(),
        liveness_timeout=0,
        envoy_path=None,
        replicas=1,
        drain_timeout=60.0,
        request_timeout=0,
        idle_timeout=0,
        max_request_bytes=8 << 20,
        max_concurrent_streams=1000,
        limits=DEFAULT_LIMITS,
        stored_responses=StoredResponsesSettings(),
        strict_parameters=False,
        keep_billing_header=False,
        api_key_file=None,
        api_keys=(),
        tls=None,
        allowed_media_domains=(),
        allowed_local_media_path=None,
        cache_dir=ROOT / ".cache/tests",
        log_level="info",
        log_format="json",
        server_number=1,
        metrics_host="127.0.0.1",
        metrics_port=0,
        metrics_socket=None,
        otlp_traces_endpoint=None,
        trace_content=False,
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
