from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import httpx
import msgspec
import pytest

from ovchat.v1 import (
    chat_service_pb2_grpc,
    model_service_pb2,
    model_service_pb2_grpc,
)
from tests.grpc.requests import successor as ask_successor
from tests.grpc.requests import text_of
from tests.parameters import pooling
from tests.rest.conftest import Stack, running_stack
from tests.successor import successor_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ovchat_server.settings import ModelSettings

# So that even 128 answers as long as the context come soon.
KV_BLOCKS = 8
# Seconds between two looks at what is held still.
PAUSE = 0.05
# For what hangs: nothing takes as long on the slowest machine.
TIMEOUT = 240


@dataclass(frozen=True)
class Target:
    """A whole service to throw things at."""

    stack: Stack
    http: httpx.Client
    channel: grpc.Channel

    def assert_healthy(self) -> None:
        """It runs, holds nothing, and answers as ever."""
        assert self.stack.process.poll() is None
        models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        while True:
            found = models.ListModels(model_service_pb2.ListModelsRequest()).models
            assert {model.state for model in found} == {model_service_pb2.MODEL_STATE_READY}
            loads = [model.load for model in found]
            if not any(
                load.running_requests or load.waiting_requests or load.used_kv_blocks
                for load in loads
            ):
                break
            time.sleep(PAUSE)
        chat = chat_service_pb2_grpc.ChatServiceStub(self.channel)
        completion = chat.CreateChatCompletion(ask_successor("abc", 20))
        assert text_of(completion) == successor_text("abc", 20)
        assert self.http.get("/v2/health/ready").status_code == 200


@pytest.fixture(scope="package")
def shared_target(
    tmp_path_factory: pytest.TempPathFactory, demo: ModelSettings, successor: ModelSettings
) -> Iterator[Target]:
    models = [msgspec.structs.replace(model, kv_blocks=KV_BLOCKS) for model in (demo, successor)]
    models += pooling.MODELS
    with (
        running_stack(tmp_path_factory.mktemp("fuzz"), *models) as stack,
        httpx.Client(base_url=stack.url, timeout=TIMEOUT) as http,
        grpc.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel,
    ):
        yield Target(stack, http, channel)


@pytest.fixture
def target(shared_target: Target) -> Iterator[Target]:
    """The service, which must be as well after the test as before."""
    yield shared_target
    shared_target.assert_healthy()
