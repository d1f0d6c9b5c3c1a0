"""Where converted models are kept: a folder for each content of a file, whole or not there."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ovchat_server.conversion.errors import ConversionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ovchat_server.conversion.weight_form import WeightForm

# Of what a conversion writes: folders of another version are not used.
VERSION = "1"


class _Seen(msgspec.Struct, frozen=True):
    """A file as it was when its digest was taken, which takes seconds for gigabytes."""

    size: int
    changed: int
    digest: str


@dataclass(frozen=True, slots=True)
class ConvertedModels:
    """The folders that files were converted to.

    Attributes:
        directory: Where they are. It can be deleted at any time while nothing is served from it.
    """

    directory: Path

    def find(self, file: Path, form: WeightForm) -> Path | None:
        """Return the folder of a file, if it was converted and did not change since."""
        seen = self._seen(file)
        if seen is None:
            return None
        folder = self._folder(file, seen.digest, form)
        return folder if folder.is_dir() else None

    def make(
        self, file: Path, form: WeightForm, write: Callable[[Path], None], waits: Callable[[], None]
    ) -> Path:
        """Return the folder of a file, which is written where there is none.

        Args:
            file: The file.
            form: What its weights are kept in.
            write: Writes the model into an empty folder.
            waits: Is called where another process is writing it.

        Raises:
            ConversionError: It cannot be written. Then nothing is left of it.
        """
        try:
            seen = self._seen(file) or self._look_at(file)
            folder = self._folder(file, seen.digest, form)
            with _locked(self.directory / f".{folder.name}.lock", waits):
                if not folder.is_dir():
                    self._write(folder, write, file)
        except OSError as error:
            raise ConversionError(
                f"{file} cannot be converted in {self.directory}: {error.strerror or error}"
            ) from error
        return folder

    def _write(self, folder: Path, write: Callable[[Path], None], file: Path) -> None:
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        # What a process has left that was killed.
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        try:
            write(unfinished)
            if self._seen(file) is None:
                raise ConversionError(f"{file} changed while it was read: start again")
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _folder(self, file: Path, digest: str, form: WeightForm) -> Path:
        key = hashlib.sha256(f"{digest}:{form}:{VERSION}".encode()).hexdigest()[:16]
        return self.directory / f"{file.stem}-{form}-{key}"

    def _look_at(self, file: Path) -> _Seen:
        status = file.stat()
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        self.directory.mkdir(parents=True, exist_ok=True)
        seen = _Seen(status.st_size, status.st_mtime_ns, digest)
        self._note(file).write_bytes(msgspec.json.encode(seen))
        return seen

    def _seen(self, file: Path) -> _Seen | None:
        """Return what was seen of a file, if it is still the same."""
        with contextlib.suppress(OSError, msgspec.DecodeError):
            seen = msgspec.json.decode(self._note(file).read_bytes(), type=_Seen)
            status = file.stat()
            if (seen.size, seen.changed) == (status.st_size, status.st_mtime_ns):
                return seen
        return None

    def _note(self, file: Path) -> Path:
        path = str(file.resolve()).encode()
        return self.directory / f".{hashlib.sha256(path).hexdigest()[:16]}.seen"


@contextlib.contextmanager
def _locked(path: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a lock, which ends with the process; `waits` is called if another one holds it."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
