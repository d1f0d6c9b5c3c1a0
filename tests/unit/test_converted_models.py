"""The cache of converted models: what it holds is whole, and is of the file as it is."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ovchat_server.conversion.cache import ConvertedModels
from ovchat_server.conversion.errors import ConversionError
from ovchat_server.conversion.weight_form import WeightForm

if TYPE_CHECKING:
    from pathlib import Path

INT8 = WeightForm.INT8


@pytest.fixture
def cache(tmp_path: Path) -> ConvertedModels:
    return ConvertedModels(tmp_path / "cache")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and weights")
    return path


def write(folder: Path) -> None:
    (folder / "written").touch()


def never(*_: object) -> None:
    pytest.fail("called")


def folders(cache: ConvertedModels) -> list[str]:
    return [path.name for path in cache.directory.iterdir() if path.is_dir()]


def test_a_file_is_converted_once(cache: ConvertedModels, file: Path) -> None:
    assert cache.find(file, INT8) is None

    folder = cache.make(file, INT8, write, never)

    assert cache.make(file, INT8, never, never) == cache.find(file, INT8) == folder
    assert [path.name for path in folder.iterdir()] == ["written"]


def test_each_form_has_a_folder_of_its_own(cache: ConvertedModels, file: Path) -> None:
    folder = cache.make(file, INT8, write, never)

    assert cache.find(file, WeightForm.FILE) is None
    assert cache.make(file, WeightForm.FILE, write, never) != folder


def test_a_file_that_changed_is_converted_anew(cache: ConvertedModels, file: Path) -> None:
    folder = cache.make(file, INT8, write, never)
    file.write_bytes(b"GGUF and other weights")

    assert cache.find(file, INT8) is None
    assert cache.make(file, INT8, write, never) != folder


def test_a_file_that_was_only_touched_is_not(cache: ConvertedModels, file: Path) -> None:
    folder = cache.make(file, INT8, write, never)
    os.utime(file, (1, 1))

    assert cache.make(file, INT8, never, never) == folder


def test_what_fails_leaves_nothing(cache: ConvertedModels, file: Path) -> None:
    def fail(folder: Path) -> None:
        write(folder)
        raise ConversionError("as it must")

    with pytest.raises(ConversionError, match="as it must"):
        cache.make(file, INT8, fail, never)

    assert folders(cache) == []


def test_what_a_killed_process_left_is_not_used(cache: ConvertedModels, file: Path) -> None:
    class Killed(BaseException):
        pass

    left: list[Path] = []

    def kill(folder: Path) -> None:
        (folder / "half").touch()
        left.append(folder)
        raise Killed

    with pytest.raises(Killed):
        cache.make(file, INT8, kill, never)
    left[0].mkdir()
    (left[0] / "half").touch()

    assert cache.find(file, INT8) is None
    folder = cache.make(file, INT8, write, never)
    assert [path.name for path in folder.iterdir()] == ["written"]
    assert folders(cache) == [folder.name]


def test_a_file_that_changes_meanwhile_leaves_nothing(cache: ConvertedModels, file: Path) -> None:
    def change(folder: Path) -> None:
        write(folder)
        file.write_bytes(b"GGUF and, meanwhile, others")

    with pytest.raises(ConversionError, match="changed while it was read"):
        cache.make(file, INT8, change, never)

    assert folders(cache) == []


def test_of_two_at_once_the_second_waits_and_takes_what_the_first_wrote(
    cache: ConvertedModels, file: Path
) -> None:
    waiting = threading.Event()
    found: list[Path] = []
    second = threading.Thread(
        target=lambda: found.append(cache.make(file, INT8, never, waiting.set))
    )

    def slowly(folder: Path) -> None:
        second.start()
        waiting.wait()
        write(folder)

    folder = cache.make(file, INT8, slowly, never)
    second.join()

    assert found == [folder]


@pytest.mark.parametrize("missing", [True, False])
def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, file: Path, *, missing: bool
) -> None:
    place = tmp_path / "place"
    if not missing:
        place.touch()
    cache = ConvertedModels(place)

    def fill_up(_folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ConversionError) as refused:
        cache.make(file, INT8, fill_up, never)

    expected = "No space left on device" if missing else "exists"
    assert f"{file} cannot be converted in {place}: " in str(refused.value)
    assert expected in str(refused.value)
