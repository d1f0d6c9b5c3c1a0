"""The worker that encodes images: what it reports when, and whose fault a failure is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ovchat_server.domain.content import ImageError
from ovchat_server.engine.contract.image_messages import ENCODED, REJECTED, ImageRequest
from ovchat_server.engine.contract.messages import BROKEN
from ovchat_server.engine.genai.image_worker import ImageWorker
from tests.figures import figure

if TYPE_CHECKING:
    from pathlib import Path


class Encoder:
    """Answers what the test wants."""

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    def encode(self, _: Any) -> Any:
        if self._fault:
            raise self._fault
        return np.zeros((3, 8), np.float32), np.array([[0], [0], [1]])


class Context:
    """Notes who runs alone."""

    def __init__(self) -> None:
        self.isolated: list[int | None] = []

    def isolate(self, identifier: int | None) -> None:
        self.isolated.append(identifier)

    def wake(self) -> None:
        raise AssertionError


def worker(folder: Path, fault: Exception | None = None) -> ImageWorker:
    made = ImageWorker(Encoder(fault), str(folder), 0, Context())  # type: ignore[arg-type]
    for identifier in (1, 2):
        made.add(ImageRequest(identifier, figure("circle", "red")))
    return made


def test_an_image_is_admitted_before_it_is_encoded(tmp_path: Path) -> None:
    encoding = worker(tmp_path / "files")
    for identifier in (1, 2):
        begun = encoding.step()
        assert (begun.admitted, begun.outputs) == ([identifier], [])
        [output] = encoding.step().outputs
        assert (output.id, output.finish, output.length, output.positions) == (
            identifier,
            ENCODED,
            3,
            2,
        )
    assert not encoding.busy


def test_an_image_that_is_given_up_is_not_encoded(tmp_path: Path) -> None:
    encoding = worker(tmp_path)
    encoding.step()
    encoding.cancel(1)
    assert encoding.step().admitted == [2]
    assert [output.id for output in encoding.step().outputs] == [2]


def test_what_an_image_is_at_fault_for_is_told(tmp_path: Path) -> None:
    encoding = worker(tmp_path, ImageError("is odd", "invalid_image"))
    encoding.step()
    [output] = encoding.step().outputs
    assert (output.finish, output.reason) == (REJECTED, "is odd")


def test_a_step_that_fails_ends_the_process(tmp_path: Path) -> None:
    encoding = worker(tmp_path, RuntimeError("no memory"))
    encoding.step()
    with pytest.raises(RuntimeError):
        encoding.step()


def test_no_room_for_rows_is_no_fault_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    encoding = worker(tmp_path / "file" / "files")
    encoding.step()
    [output] = encoding.step().outputs
    assert output.finish == BROKEN
    assert "its rows cannot be written" in output.reason
