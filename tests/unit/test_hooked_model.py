"""A model's folder with an operation more, which changes neither the model nor what it says."""

from __future__ import annotations

import gc
import hashlib
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov
import pytest

from ovchat_server.engine.contract.worker import ModelLoadError
from ovchat_server.engine.genai.hooked_model import GRAPH, hooked_model
from ovchat_server.engine.genai.logits_hook import logits_hook
from ovchat_server.engine.genai.vision_folder import LANGUAGE_MODEL, TEXT_EMBEDDINGS
from tests.conftest import EXACT, ROOT
from tests.vision_models import as_vision_model

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS = ["demo", "successor"]
TOKENS = np.random.default_rng(0).integers(0, 250, (1, 40))


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def logits(folder: str | Path, *extensions: Any) -> np.ndarray:
    core = ov.Core()
    for extension in extensions:
        core.add_extension(extension)
    compiled = core.compile_model(Path(folder) / GRAPH, "CPU", EXACT)
    inputs = {
        "input_ids": TOKENS,
        "attention_mask": np.ones_like(TOKENS),
        "position_ids": np.arange(TOKENS.size).reshape(TOKENS.shape),
        "beam_idx": np.zeros(1, np.int32),
    }
    result: np.ndarray = compiled.create_infer_request().infer(inputs)["logits"]
    return result


def operations() -> int:
    return sum(type(item).__name__ == "LogitsHook" for item in gc.get_objects())


def test_a_step_leaves_nothing_behind() -> None:
    with hooked_model(str(ROOT / "models/successor"), "CPU") as hooked:
        assert hooked is not None
        core = ov.Core()
        core.add_extension(logits_hook(lambda *_: None))
        compiled = core.compile_model(Path(hooked.path) / GRAPH, "CPU", EXACT)
    request = compiled.create_infer_request()
    found = []
    for length in range(1, 11):
        shape = (1, length)
        request.infer(
            {
                "input_ids": np.full(shape, 97),
                "attention_mask": np.ones(shape, np.int64),
                "position_ids": np.arange(length).reshape(shape),
                "beam_idx": np.zeros(1, np.int32),
            }
        )
        request.reset_state()
        found.append(operations())
    assert len(set(found[1:])) == 1


@pytest.mark.parametrize("name", MODELS)
def test_the_folder_stays_as_it_is_and_the_other_one_goes(name: str) -> None:
    folder = ROOT / "models" / name
    before = digests(folder)

    with hooked_model(str(folder), "CPU") as hooked:
        assert hooked is not None
        inside = Path(hooked.path)
        assert {item.name for item in inside.iterdir()} == {item.name for item in folder.iterdir()}
        assert [item.name for item in inside.iterdir() if not item.is_symlink()] == [GRAPH]

    assert not inside.exists()
    assert digests(folder) == before


def test_the_other_folder_goes_where_loading_fails() -> None:
    folder = ROOT / "models/successor"
    before = digests(folder)
    inside = Path()

    def load() -> None:
        nonlocal inside
        with hooked_model(str(folder), "CPU") as hooked:
            inside = Path(hooked.path if hooked else "")
            assert inside.is_dir()
            raise RuntimeError("it does not load")

    with pytest.raises(RuntimeError, match="it does not load"):
        load()

    assert not inside.exists()
    assert digests(folder) == before


def test_a_folder_may_be_told_relative_to_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "models")

    with hooked_model("successor", "CPU") as hooked:
        assert all(item.exists() for item in Path(hooked.path if hooked else "").iterdir())


def test_beside_compiled_models_it_is_kept_and_made_once(tmp_path: Path) -> None:
    folder, cache = ROOT / "models/successor", tmp_path / "not there/yet"
    found = []
    for _ in range(2):
        with hooked_model(str(folder), "CPU", str(cache)) as hooked:
            found.append(hooked.path if hooked else "")
            written = (Path(hooked.path if hooked else "") / GRAPH).stat().st_mtime_ns
            assert (Path(hooked.path if hooked else "") / "openvino_model.bin").resolve() == (
                folder / "openvino_model.bin"
            )
    assert len(set(found)) == 1
    assert [str(item) for item in cache.iterdir()] == found[:1]
    assert (Path(found[0]) / GRAPH).stat().st_mtime_ns == written


def test_what_is_kept_of_a_model_that_has_changed_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(ROOT / "models/successor", folder)
    found = set()
    for change in ("", "openvino_model.bin", GRAPH, "another file"):
        if change:
            (folder / change).touch()
        with hooked_model(str(folder), "CPU", str(tmp_path / "cache")) as hooked:
            found.add(hooked.path if hooked else "")
    assert len(found) == 4


def test_nothing_is_kept_of_what_cannot_be_tapped(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    cache = tmp_path / "cache"
    with hooked_model(str(tmp_path / "model"), "CPU", str(cache)) as hooked:
        assert hooked is None
    assert not [*cache.iterdir()]


@pytest.mark.parametrize("device", ["GPU", "GPU.1", "AUTO", "NPU"])
def test_only_the_cpu_runs_it(device: str) -> None:
    with hooked_model(str(ROOT / "models/successor"), device) as hooked:
        assert hooked is None


def other_end(root: ET.Element) -> None:
    """The result shows something else than a product."""
    [product] = [item for item in root.iter("layer") if item.get("name", "").startswith(HEAD)]
    product.set("type", "Add")


def two_results(root: ET.Element) -> None:
    layers = root.find("layers")
    assert layers is not None
    ET.SubElement(layers, "layer", id="100000", name="another", type="Result", version="opset1")


def no_result(root: ET.Element) -> None:
    layers = root.find("layers")
    assert layers is not None
    layers.remove(next(item for item in layers if item.get("type") == "Result"))


def no_positions(root: ET.Element) -> None:
    [layer] = [item for item in root.iter("layer") if item.get("name") == "position_ids"]
    layer.set("name", "where")


HEAD = "__module.lm_head/"


@pytest.mark.parametrize("edit", [other_end, two_results, no_result, no_positions])
def test_a_graph_of_another_form_is_left_alone(
    tmp_path: Path, edit: Callable[[ET.Element], None]
) -> None:
    tree = ET.parse(ROOT / "models/successor" / GRAPH)
    tree.write(tmp_path / GRAPH)
    with hooked_model(str(tmp_path), "CPU") as hooked:
        assert hooked is not None
    edit(tree.getroot())
    tree.write(tmp_path / GRAPH)

    with hooked_model(str(tmp_path), "CPU") as hooked:
        assert hooked is None


@pytest.mark.parametrize("name", MODELS)
def test_the_model_says_the_same_and_what_is_added_to_it(name: str) -> None:
    folder = ROOT / "models" / name
    plain = logits(folder)
    values = np.random.default_rng(1).normal(0, 5, plain.shape[1:]).astype(np.float32)
    seen: list[tuple[np.ndarray, ...]] = []

    def look(
        rows: np.ndarray,
        tokens: np.ndarray,
        positions: np.ndarray,
        added: Callable[[], np.ndarray],
    ) -> None:
        seen.append((rows.copy(), tokens.copy(), positions.copy()))
        if adding:
            room = added()
            assert not room.any()
            room += values

    with hooked_model(str(folder), "CPU") as hooked:
        adding = False
        same = logits(hooked.path if hooked else "", logits_hook(look))
        adding = True
        changed = logits(hooked.path if hooked else "", logits_hook(look))

    np.testing.assert_allclose(same, plain, atol=1e-4)
    np.testing.assert_allclose(changed, plain + values, atol=1e-4)
    for rows, tokens, positions in seen:
        np.testing.assert_allclose(rows, plain[0], atol=1e-4)
        assert tokens.tolist() == TOKENS[0].tolist()
        assert positions.tolist() == [*range(TOKENS.size)]
    assert len(seen) == 2


@pytest.fixture(scope="module")
def sees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return as_vision_model(ROOT / "models/demo", tmp_path_factory.mktemp("models") / "sees")


def test_of_a_model_that_sees_only_graphs_and_settings_are_written_anew(sees: Path) -> None:
    before = digests(sees)
    (sees / "openvino_vision_embeddings_model.bin").touch()
    with hooked_model(str(sees), "CPU") as hooked:
        assert hooked is not None
        assert hooked.rows is not None
        written = {item.name for item in Path(hooked.path).iterdir() if not item.is_symlink()}
    assert written == {
        LANGUAGE_MODEL,
        TEXT_EMBEDDINGS,
        "config.json",
        "preprocessor_config.json",
        "openvino_vision_embeddings_model.xml",
        "openvino_vision_embeddings_model.bin",
    }
    (sees / "openvino_vision_embeddings_model.bin").unlink()
    assert digests(sees) == before


def test_a_model_that_sees_says_what_to_do_where_it_cannot_be_served(
    sees: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match="set device to CPU"), hooked_model(str(sees), "GPU"):
        pass
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / LANGUAGE_MODEL).write_text("cut o")
    broken = "export or copy .* anew"
    with pytest.raises(ModelLoadError, match=broken), hooked_model(str(tmp_path), "CPU"):
        pass
    tree = ET.parse(sees / LANGUAGE_MODEL)
    [layer] = [item for item in tree.getroot().iter("layer") if item.get("name") == "beam_idx"]
    layer.set("name", "token_type_ids")
    tree.write(tmp_path / LANGUAGE_MODEL)
    unknown = "its language model needs token_type_ids"
    with pytest.raises(ModelLoadError, match=unknown), hooked_model(str(tmp_path), "CPU"):
        pass
    layer.set("name", "beam_idx")
    other_end(tree.getroot())
    tree.write(tmp_path / LANGUAGE_MODEL)
    shutil.copy(sees / TEXT_EMBEDDINGS, tmp_path)
    end = "does not end in a product"
    with pytest.raises(ModelLoadError, match=end), hooked_model(str(tmp_path), "CPU"):
        pass
