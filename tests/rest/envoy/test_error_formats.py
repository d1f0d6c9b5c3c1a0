"""Errors have the shape of the API that their path belongs to, whoever makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.launch.envoy_config import EnvoyFiles
from tests.rest.envoy.edge import assert_error, edge, manager
from tests.rest.envoy.paths import CHAT
from tests.rest.envoy.scripted import ERROR, MAX_BYTES, WITH_ERROR

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.rest.envoy.edge import Edge

FORMATTER = """
FORMATS.toy = function(failure)
  return string.format(
    '{"status":%s,"trouble":%s,"kind":"%s"}', failure.status, failure.message, failure.code
  )
end
APIS["^/v3/chat/completions"] = "toy"
"""
OTHER = "/v1/completions"


def with_toy(config: dict[str, Any]) -> None:
    """Chats get the format of another API; all other paths keep theirs."""
    [lua] = [item for item in manager(config)["http_filters"] if item["name"].endswith("http.lua")]
    source = EnvoyFiles.locate().config.with_name("errors.lua").read_text()
    head, mark, rest = source.partition("-- Envoy's own replies,")
    assert mark
    lua["typed_config"]["default_source_code"] = {"inline_string": head + FORMATTER + mark + rest}


@pytest.fixture(scope="module")
async def toy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edge]:
    async with edge(tmp_path_factory.mktemp("toy"), with_toy) as running:
        yield running


async def test_a_bare_grpc_status_has_the_apis_format(toy: Edge) -> None:
    answer = await toy.post({"abort": "NOT_FOUND", "details": 'no "such"'})
    assert answer.status_code == 404
    assert answer.json() == {"status": 404, "trouble": 'no "such"', "kind": "not_found"}
    assert int(answer.headers["content-length"]) == len(answer.content)


async def test_what_the_server_wrote_is_left_as_it_is(toy: Edge) -> None:
    answer = await toy.post({"abort": "NOT_FOUND", "trailers": list(map(list, WITH_ERROR))})
    assert (answer.status_code, answer.json()) == (404, ERROR)


async def test_envoys_own_replies_have_the_apis_format(toy: Edge) -> None:
    answers = {
        404: await toy.http.get(f"{CHAT}/x"),
        405: await toy.http.put(CHAT),
        415: await toy.http.post(CHAT, content=b"x", headers={"content-type": "text/plain"}),
        413: await toy.http.post(
            CHAT, content=b"x" * (MAX_BYTES + 1), headers={"content-type": "application/json"}
        ),
    }
    for status, answer in answers.items():
        assert answer.status_code == status, answer.text
        body = answer.json()
        assert set(body) == {"status", "trouble", "kind"}
        assert body["status"] == status
        assert body["trouble"]
        assert answer.headers["content-type"] == "application/json"
        assert int(answer.headers["content-length"]) == len(answer.content)
    assert answers[405].headers["allow"] == "POST, OPTIONS"


async def test_other_paths_keep_theirs(toy: Edge) -> None:
    assert_error(await toy.http.put(OTHER), 405, "method_not_allowed")
    assert_error(await toy.http.get("/nowhere"), 404, "not_found")


async def test_a_server_that_is_away_is_told_in_the_apis_format(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("away")
    async with edge(directory, with_toy, server_runs=False) as running:
        answer = await running.post({})
        assert answer.status_code == 503
        assert json.loads(answer.content)["kind"] == "service_unavailable"
        assert answer.headers["retry-after"] == "1"
