"""The process that encodes images: each once, for whoever asks, and no file is left behind."""

from __future__ import annotations

import asyncio
import gc
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest

from ovchat_server.backoff import Backoff
from ovchat_server.domain.content import ImageError
from ovchat_server.domain.errors import OverloadedError, UnavailableError
from ovchat_server.domain.models import ModelState
from ovchat_server.engine.client.image_encoder import SupervisedImageEncoder
from ovchat_server.engine.contract.image_messages import ImageSpec
from tests.conftest import EXACT, ROOT
from tests.engine.conftest import WatchedProcess, at_once, loaded
from tests.figures import figure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ovchat_server.engine.contract.image_encoder import EncodedImage
    from ovchat_server.engine.contract.image_messages import ImageOutput
    from ovchat_server.engine.contract.messages import Report

SPEC = ImageSpec(name="images", path=str(ROOT / "models/demo-vision"), properties=EXACT)
CIRCLE, SQUARE, TRIANGLE = figure("circle", "red"), figure("square", "blue"), figure("", "green")


class Watched(WatchedProcess):
    """An encoder of images, and the folder with its files."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.engine = SupervisedImageEncoder(SPEC, self.changed.set, Backoff(at_once))

        self.old: set[str] = set()

    @property
    def files(self) -> set[str]:
        """Those that this test made."""
        return {str(file) for file in self.engine._folder.iterdir()} - self.old

    def forget(self) -> None:
        """Forget all images. A test that failed may still hold some."""
        self.engine._images.clear()
        gc.collect()
        self.old |= self.files

    def ask(self, file: bytes) -> asyncio.Task[EncodedImage]:
        return asyncio.create_task(self.engine.encode(file))

    async def asked(self, *files: bytes) -> list[asyncio.Task[EncodedImage]]:
        """Those who wait for some images, once all of them do."""
        count = self._waiters + len(files)
        tasks = [self.ask(file) for file in files]
        while True:
            if self._waiters == count:
                return tasks
            await asyncio.sleep(0)

    @property
    def _waiters(self) -> int:
        return sum(encoding.waiters for encoding in self.engine._encodings.values())

    def on_report(
        self, patch: pytest.MonkeyPatch, seen: Callable[[Report[ImageOutput]], None]
    ) -> Callable[[Report[ImageOutput]], None]:
        """Have reports with an output go to `seen`; returns where they would have gone."""
        in_flight = self.engine.supervisor.in_flight
        deliver: Callable[[Report[ImageOutput]], None] = in_flight.deliver

        def reported(report: Report[ImageOutput]) -> None:
            (seen if report.outputs else deliver)(report)

        patch.setattr(in_flight, "deliver", reported)
        return deliver


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Watched]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("files")))
        watched = Watched()
    async with loaded(watched):
        yield watched


@pytest.fixture
async def encoder(running: Watched) -> Watched:
    """One that knows no image."""
    # A test that failed may have killed it.
    await running.until(ModelState.READY)
    running.forget()
    return running


async def test_an_image_is_encoded_once(encoder: Watched) -> None:
    with encoder.held():
        tasks = await encoder.asked(*[CIRCLE] * 9, SQUARE)
    *circles, square = await asyncio.gather(*tasks)
    assert all(image is circles[0] for image in circles)
    assert await encoder.engine.encode(CIRCLE) is circles[0]
    small = await encoder.engine.encode(CIRCLE, low_detail=True)
    images = {circles[0], square, small}
    assert len({image.hash for image in images}) == 3
    assert encoder.files == {image.rows for image in images}


async def test_a_file_is_there_as_long_as_somebody_needs_it(
    encoder: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder.engine._images, "_max_kept_bytes", 1)
    circle = await encoder.engine.encode(CIRCLE)
    square = (await encoder.engine.encode(SQUARE)).rows
    # The last one is kept; the test has the first.
    assert encoder.files == {circle.rows, square}
    triangle = (await encoder.engine.encode(TRIANGLE)).rows
    gc.collect()
    assert encoder.files == {circle.rows, triangle}
    assert await encoder.engine.encode(CIRCLE) is circle
    gc.collect()
    assert encoder.files == {circle.rows}


async def test_no_more_images_are_in_use_than_there_is_room_for(
    encoder: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    monkeypatch.setattr(encoder.engine._images, "_max_bytes", 1)
    circle = await encoder.engine.encode(CIRCLE)
    with pytest.raises(OverloadedError, match="Too many images are in use"):
        await encoder.engine.encode(SQUARE)
    assert encoder.files == {circle.rows}
    # What only waits to be asked for makes room.
    assert await encoder.engine.encode(CIRCLE) is circle
    del circle
    square = await encoder.engine.encode(SQUARE)
    assert encoder.files == {square.rows}


async def test_an_image_whose_file_was_cleaned_away_is_encoded_again(encoder: Watched) -> None:
    image = await encoder.engine.encode(CIRCLE)
    shutil.rmtree(encoder.engine._folder)
    again = await encoder.engine.encode(CIRCLE)
    assert encoder.files == {again.rows} != {image.rows}


async def test_who_leaves_takes_nothing_from_others(encoder: Watched) -> None:
    with encoder.held():
        leaving, staying = await encoder.asked(CIRCLE, CIRCLE)
        leaving.cancel()
    image = await staying
    assert encoder.files == {image.rows}
    assert leaving.cancelled()


async def test_what_nobody_waits_for_leaves_no_file(encoder: Watched) -> None:
    with encoder.held():
        for task in await encoder.asked(CIRCLE, SQUARE, CIRCLE):
            task.cancel()
            await asyncio.wait([task])
    # In the order in which they came.
    image = await encoder.engine.encode(TRIANGLE)
    assert encoder.files == {image.rows}


async def test_who_leaves_as_the_output_comes_leaves_no_file(
    encoder: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(report: Report[ImageOutput]) -> None:
        assert encoder.files
        task.add_done_callback(lambda _: deliver(report))
        task.cancel()

    with monkeypatch.context() as patch:
        deliver = encoder.on_report(patch, leave)
        task = encoder.ask(CIRCLE)
        await asyncio.wait([task])
    image = await encoder.engine.encode(TRIANGLE)
    assert encoder.files == {image.rows}


async def test_all_who_wait_for_what_is_none_are_told(encoder: Watched) -> None:
    with encoder.held():
        tasks = await encoder.asked(b"text", b"text", CIRCLE)
    *refused, _ = await asyncio.gather(*tasks, return_exceptions=True)
    for error in refused:
        assert isinstance(error, ImageError)
        assert error.code == "invalid_image_format"
    with pytest.raises(ImageError):
        await encoder.engine.encode(b"text")


async def test_another_process_encodes_what_waits(encoder: Watched) -> None:
    encoder.stop()
    tasks = await encoder.asked(SQUARE, CIRCLE)
    encoder.kill()
    images = await asyncio.gather(*tasks)
    assert encoder.files == {image.rows for image in images}


async def test_nothing_is_left_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with loaded(Watched()) as encoder:
        await encoder.engine.encode(SQUARE)
        lost = asyncio.Event()
        encoder.on_report(monkeypatch, lambda _: lost.set())
        task = encoder.ask(CIRCLE)
        await lost.wait()
        assert len(encoder.files) == 2
    with pytest.raises(UnavailableError):
        await task
    assert not list(tmp_path.iterdir())
