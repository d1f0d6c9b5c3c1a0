"""GGUF files among the models to serve: folders by the time that anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.weight_form import WeightForm
from ovchat_server.gguf_models import check_paths, with_folders
from ovchat_server.serving.model_folder import ModelFilesError
from ovchat_server.settings import ModelSettings
from tests.conftest import ROOT, settings_of

if TYPE_CHECKING:
    from pathlib import Path

    from ovchat_server.settings import Settings


def settings(tmp_path: Path, name: str, weights: WeightForm | None = None) -> Settings:
    model = ModelSettings(name="m", path=tmp_path / name, weights=weights)
    return settings_of(model, cache_dir=tmp_path / "cache")


def test_a_file_is_converted_and_then_found(tmp_path: Path) -> None:
    file = tmp_path / "x.GGUF"
    file.touch()
    cache = ConvertedModels(tmp_path / "cache")
    asked: list[tuple[Path, WeightForm]] = []

    def convert(path: Path, form: WeightForm) -> Path:
        asked.append((path, form))
        return cache.make(path, form, lambda _folder: None, pytest.fail)

    given = settings(tmp_path, "x.GGUF", WeightForm.FILE)
    first = with_folders(given, convert)
    again = with_folders(given, convert)

    assert asked == [(file, WeightForm.FILE)]
    assert first == again
    [model] = first.models
    assert model == msgspec.structs.replace(given.models[0], path=model.path)
    assert model.path.parent == cache.directory


def test_a_folder_stays_what_it_is(tmp_path: Path) -> None:
    given = settings(tmp_path, "folder")

    assert with_folders(given, pytest.fail) == given


def test_a_draft_model_is_a_folder(tmp_path: Path) -> None:
    demo, file = ROOT / "models/demo", tmp_path / "x.gguf"
    model = ModelSettings(name="m", path=demo, speculation="draft", draft_model=demo)
    check_paths([model])
    for fault in ("there is no folder", "must be a model's folder, and .* is a file"):
        with pytest.raises(ModelFilesError, match=f"the model 'm': draft_model.*{fault}"):
            check_paths([msgspec.structs.replace(model, draft_model=file)])
        file.touch()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"task": "rerank"}, "its task is rerank, and GGUF files are for models that generate"),
        ({"pooling": "cls"}, "pooling is set, and GGUF files are for models that generate"),
    ],
)
def test_options_of_embeddings_are_refused_before_a_file_is_converted(
    tmp_path: Path, options: dict[str, Any], complaint: str
) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    with pytest.raises(ModelFilesError, match=complaint):
        check_paths([ModelSettings(name="m", path=file, **options)])
