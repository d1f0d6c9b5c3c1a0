"""KServe's and OVMS's paths that probes and consoles call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.rest.conftest import Stack


@pytest.mark.parametrize("path", ["/v2", "/v2/", "/"])
def test_the_server_says_what_it_is(stack: Stack, path: str) -> None:
    answer = httpx.get(f"{stack.url}{path}").json()
    assert answer["name"] == "ovchat"
    assert answer["version"] == httpx.get(f"{stack.url}/version").json()["version"]
    assert answer["extensions"] == []
    assert answer["chat_completions"] == "/v3/chat/completions"
    assert httpx.get(stack.url + answer["providers"]).status_code == 200


def test_who_only_knocks_is_answered(stack: Stack) -> None:
    answer = httpx.head(f"{stack.url}/")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("path", ["/v2/models/demo", "/v2/models/demo/"])
def test_a_model_has_a_name_and_a_platform(stack: Stack, path: str) -> None:
    answer = httpx.get(f"{stack.url}{path}")
    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["platform"]) == ("demo", "OpenVINO")


@pytest.mark.parametrize("path", ["/v2/models/demo/ready", "/v2/models/demo/ready/"])
def test_a_ready_model_says_so(stack: Stack, path: str) -> None:
    answer = httpx.get(f"{stack.url}{path}")
    assert (answer.status_code, answer.json()) == (200, {"name": "demo", "ready": True})


@pytest.mark.parametrize("path", ["/v2/models/nobody", "/v2/models/nobody/ready"])
def test_an_unknown_model_is_not_found(stack: Stack, path: str) -> None:
    answer = httpx.get(f"{stack.url}{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


def test_inference_on_tensors_is_an_unknown_path(stack: Stack) -> None:
    answer = httpx.post(f"{stack.url}/v2/models/demo/infer", json={})
    assert answer.status_code == 404
    assert "tensors" in answer.json()["error"]["message"]


def test_the_config_has_the_state_of_every_model(stack: Stack) -> None:
    answer = httpx.get(f"{stack.url}/v1/config").json()
    assert {"demo", "successor"} <= answer.keys()
    [version] = answer["demo"]["model_version_status"]
    assert (version["version"], version["state"]) == ("1", "AVAILABLE")
    assert version["status"] == {"error_code": "OK", "error_message": "OK"}
