"""What cannot be loaded: for a reason that stays it is FAILED, and what to do is told."""

from __future__ import annotations

import logging
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from ovchat_server.domain.errors import UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client import supervisor
from ovchat_server.engine.client.connection import EngineConnection
from tests.conftest import ROOT
from tests.engine.conftest import Watched, collect, loaded, request, spec
from tests.successor import successor_text
from tests.vision_models import as_vision_model

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.engine.contract.messages import Failed

# Options that nothing but other options will mend, and how the reason begins.
LASTING: dict[str, tuple[dict[str, Any], str]] = {
    "device": ({"device": "CPUX"}, r"set device to one that is here \(.*CPU.*\), not 'CPUX': "),
    "number": ({"device": "CPU:7"}, r"set device to one that is here \(.*CPU.*\), not 'CPU:7': "),
    "driver": ({"device": "NPU"}, r"set device to one that is here \(.*CPU.*\), or .*'NPU'"),
    "property": (
        {"properties": {"INFERENCE_PRECISION_HNT": "f32"}},
        r"correct the property INFERENCE_PRECISION_HNT \(did you mean INFERENCE_PRECISION_HINT\?\)",
    ),
    "value": (
        {"properties": {"KV_CACHE_PRECISION": "u9"}},
        "correct the property KV_CACHE_PRECISION: .*u9.* u8, u4",
    ),
    "precision": (
        {
            "kv_cache_precision": "bf16",
            "properties": {"INFERENCE_PRECISION_HINT": "f32"},
        },
        "set kv_cache_precision to u4, u8, f16 or f32, as the model is computed: ",
    ),
    "gigabytes": (
        {"kv_blocks": None, "kv_cache_gb": 400_000},
        "lower kv_cache_gb from 400000: this machine has .* GiB of memory",
    ),
    "blocks": (
        {"kv_blocks": 1_000_000_000},
        "lower kv_blocks from 1000000000, which take .* GiB: this machine has .* GiB of memory",
    ),
    "cache": (
        {"properties": {"CACHE_DIR": "/dev/null/cache"}},
        "set CACHE_DIR to a folder that can be written to: .*/dev/null",
    ),
}


async def failed(watched: Watched) -> str:
    """The reason for which it is not tried again."""
    watched.engine.start()
    try:
        await watched.until(ModelState.FAILED)
        with pytest.raises(UnavailableError, match="cannot be loaded") as refused:
            watched.engine.supervisor.check_ready()
        assert refused.value.retry_after is None
        assert watched.engine.status.reason in str(refused.value)
        return watched.engine.status.reason.removeprefix("it cannot be loaded: ")
    finally:
        await watched.engine.close()


@pytest.mark.parametrize(("options", "told"), LASTING.values(), ids=LASTING)
async def test_what_options_alone_can_mend_is_told_and_not_tried_again(
    options: dict[str, Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    reason = await failed(Watched(spec(**options)))

    assert re.match(told, reason), reason
    assert not re.search(r"Exception from|failed at|\.[ch]pp", reason)
    assert caplog.messages == [
        "successor: loading",
        f"successor: cannot be loaded: {reason}",
    ]


async def test_a_family_that_sees_in_another_way_is_refused_with_what_it_needs(
    tmp_path: Path,
) -> None:
    folder = as_vision_model(ROOT / "models/successor", tmp_path / "sees")
    graph = folder / "openvino_language_model.xml"
    graph.write_text(graph.read_text().replace("beam_idx", "token_type_ids"))

    reason = await failed(Watched(spec(str(folder))))

    assert reason == (
        "models of this family cannot be served: its language model needs token_type_ids"
    )


async def test_a_broken_file_is_named_and_the_model_tried_again_when_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ovchat_server.engine.client.file_changes.INTERVAL", 0.01)
    whole = ROOT / "models/successor"
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / "openvino_model.bin").write_bytes(b"cut off")
    watched = Watched(spec(str(tmp_path)))
    watched.engine.start()
    try:
        await watched.until(ModelState.FAILED)
        assert "export or copy openvino_model.xml and .bin anew: " in watched.engine.status.reason

        shutil.copy(whole / "openvino_model.bin", tmp_path)

        await watched.until(ModelState.READY)
        answer, _ = await collect(watched.engine.generate([request("a", 5)]))
        assert answer == successor_text("a", 5)
    finally:
        await watched.engine.close()


async def test_a_file_that_changes_while_the_model_is_loaded_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shutil.copytree(ROOT / "models/successor", tmp_path / "model")
    (model / "openvino_model.bin").write_bytes(b"cut off")
    died = EngineConnection.died

    async def copied_meanwhile(connection: EngineConnection[Any, Any, Any]) -> Failed:
        failure = await died(connection)
        shutil.copy(ROOT / "models/successor/openvino_model.bin", model)
        return failure

    monkeypatch.setattr(EngineConnection, "died", copied_meanwhile)
    async with loaded(Watched(spec(str(model)))) as watched:
        answer, _ = await collect(watched.engine.generate([request("a", 5)]))
        assert answer == successor_text("a", 5)


async def test_a_model_that_was_served_before_fails_only_after_several_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "MAX_FAILED_STARTS", 3)
    monkeypatch.setattr(supervisor, "RESTART_TIMEOUT", 0)
    model = shutil.copytree(ROOT / "models/successor", tmp_path / "model")
    async with loaded(Watched(spec(str(model)))) as watched:
        shutil.rmtree(model)
        watched.kill()
        starts = 0
        while watched.engine.status.state is not ModelState.FAILED:
            starts += watched.engine.status.state is ModelState.LOADING
            watched.changed.clear()
            await watched.changed.wait()
        # The death is the first of the three.
        assert starts == 2


async def test_what_may_pass_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(spec())
    watched.engine.start()
    try:
        await watched.until(ModelState.READY)
        watched.kill()
        await watched.until_reason("was killed, as the system does when memory runs out")
        await watched.until(ModelState.READY)
    finally:
        await watched.engine.close()
    assert any("restarting in" in message for message in caplog.messages)


async def test_a_loaded_model_tells_of_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = Watched(spec())
    watched.engine.start()
    await watched.until(ModelState.READY)
    await watched.engine.close()

    assert re.fullmatch(
        r"successor: loaded in [\d.]+ s: weights 1 MiB, KV cache 1 MiB for 2048 tokens "
        r"\(up to 2014 of the model's 4096 for one caller, 256 each for 8\)",
        caplog.messages[-1],
    )
