"""What engine processes run that generate tokens with OpenVINO GenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ovchat_server.engine.contract.generation_spec import GenerationSpec
from ovchat_server.engine.genai.pipeline import GenaiPipeline
from ovchat_server.engine.scheduling.worker import GenerationWorker

if TYPE_CHECKING:
    from ovchat_server.engine.contract.generation_messages import (
        GenerationLimits,
        SequenceOutput,
        SequenceRequest,
    )
    from ovchat_server.engine.contract.worker import Host, Worker


def load(spec: bytes, host: Host) -> Worker[SequenceRequest, SequenceOutput, GenerationLimits]:
    """Load the model of a GenerationSpec; see engine.contract.worker.LoadWorker."""
    decoded = msgspec.msgpack.decode(spec, type=GenerationSpec)
    return GenerationWorker(GenaiPipeline(decoded), decoded, host)
