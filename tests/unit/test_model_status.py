"""What a model tells of itself: what it can do, and whether it is ready."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from ovchat.v1 import model_service_pb2
from ovchat_server.domain.models import Capability, ModelState
from ovchat_server.engine.contract.engine import ANONYMOUS, EngineStatus
from ovchat_server.rest.openai.models import model_object
from ovchat_server.rpc import model_messages
from tests.unit.serving_tools import READY, ScriptedEngine, served

if TYPE_CHECKING:
    from ovchat_server.engine.contract.engine import Caller
    from ovchat_server.engine.contract.generation import GenerationStatus
    from ovchat_server.engine.contract.image_encoder import EncodedImage

LOADED = EngineStatus(ModelState.READY)
UNAVAILABLE = EngineStatus(ModelState.UNAVAILABLE, "the encoder died")


@dataclass(frozen=True)
class IdleEncoder:
    """An encoder of images that gets none."""

    status: EngineStatus = LOADED
    loaded: bool = True

    async def encode(
        self, file: bytes, *, low_detail: bool, caller: Caller = ANONYMOUS
    ) -> EncodedImage:
        raise NotImplementedError


def test_what_encodes_images_makes_a_vision_model() -> None:
    status = dataclasses.replace(served(), images=IdleEncoder()).status

    assert status.capabilities == (Capability.CHAT, Capability.VISION)
    assert model_object(status)["input_modalities"] == ["text", "image"]
    assert model_service_pb2.CAPABILITY_VISION in model_messages.model(status).capabilities


@pytest.mark.parametrize(
    ("engine", "encoder", "told"),
    [
        (READY, IdleEncoder(EngineStatus(ModelState.LOADING), loaded=False), ModelState.LOADING),
        (READY, IdleEncoder(UNAVAILABLE, loaded=False), ModelState.UNAVAILABLE),
        (READY, IdleEncoder(), ModelState.READY),
        # Texts are answered.
        (READY, IdleEncoder(UNAVAILABLE), ModelState.READY),
        (
            dataclasses.replace(READY, state=ModelState.FAILED),
            IdleEncoder(UNAVAILABLE, loaded=False),
            ModelState.FAILED,
        ),
    ],
)
def test_a_vision_model_is_ready_once_its_encoder_was_loaded(
    engine: GenerationStatus, encoder: IdleEncoder, told: ModelState
) -> None:
    status = dataclasses.replace(served(ScriptedEngine(status=engine)), images=encoder).status

    assert status.state is told
    assert status.state_reason == (UNAVAILABLE.reason if told is ModelState.UNAVAILABLE else "")
