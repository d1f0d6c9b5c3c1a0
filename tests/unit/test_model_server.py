"""What KServe's and OVMS's probes hear of a model that is not ready."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ovchat.v1 import rest_service_pb2
from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.rest.model_server import ModelServerInfo
from ovchat_server.serving.model_registry import ModelRegistry
from ovchat_server.serving.versions import Versions
from tests.unit.serving_tools import READY, ScriptedEngine, served


@pytest.mark.parametrize(
    ("state", "code"),
    [(ModelState.LOADING, "OK"), (ModelState.UNAVAILABLE, "OK"), (ModelState.FAILED, "UNKNOWN")],
)
def test_a_model_that_does_not_answer_is_not_ready(state: ModelState, code: str) -> None:
    status = dataclasses.replace(READY, state=state, reason="why")
    info = ModelServerInfo(
        ModelRegistry([served(ScriptedEngine(status=status))]), Versions("1", "2", "3")
    )

    with pytest.raises(UnavailableError, match="Not ready: demo: why") as caught:
        info.ready(rest_service_pb2.RestServiceGetModelReadinessRequest(id="demo"))
    config: Any = info.config(rest_service_pb2.RestServiceGetConfigRequest())

    assert caught.value.retry_after == (None if state is ModelState.FAILED else 1)
    [version] = config["demo"]["model_version_status"]
    assert version["state"] == "LOADING"
    assert version["status"]["error_code"] == code
