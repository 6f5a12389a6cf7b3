"""Small files and sizes at the archive's place, without Arrow, and without waiting for ever.

A folder is read by the system's own calls: retention looks into the archive in processes that never
need Arrow otherwise. Any other place is reached by Arrow.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from delivery.history.spark.reach import shown_place

if TYPE_CHECKING:
    from pyarrow import fs

Result = TypeVar("Result")
# A store on the other side of the world answers in a second.
ANSWER_SECONDS = 10.0


class ArchiveError(RuntimeError):
    """The archive differs from the ledger, or cannot be read; the message names the file."""


class NoAnswerFromStorageError(ArchiveError):
    """The storage of the archive did not answer, or with an error."""


@dataclass(slots=True)
class _Call:
    """A call in a separate thread, with the result or the error."""

    call: Callable[[], Any]
    ended: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None

    def execute(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:  # noqa: BLE001 - it is raised in the waiting thread
            self.error = error
        self.ended.set()


# By place: calls not returned in time. A second call would wait for the same storage.
_unanswered: dict[str, _Call] = {}


def call_storage(url: str, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
    """Return the result of a call to the storage at this URL.

    Raises NoAnswerFromStorageError if it does not return in `seconds`, usually ANSWER_SECONDS, or
    with an OSError. A mount without its server may block a call for ever: the thread is left
    behind, and further calls fail at once until it returns.
    """
    if (earlier := _unanswered.get(url)) is not None:
        if not earlier.ended.is_set():
            raise NoAnswerFromStorageError(_silence(url))
        _unanswered.pop(url, None)
    made = _Call(call)
    threading.Thread(target=made.execute, name="archive storage", daemon=True).start()
    try:
        made.ended.wait(seconds or ANSWER_SECONDS)
    finally:
        # Also if a stop ends the wait.
        if not made.ended.is_set():
            _unanswered[url] = made
    if not made.ended.is_set():
        raise NoAnswerFromStorageError(_silence(url))
    if isinstance(made.error, OSError):
        raise NoAnswerFromStorageError(
            f"The archive at {shown_place(url)} cannot be used: {made.error}. Correct "
            "HISTORY_URL, or mend that place, and try again."
        ) from made.error
    if made.error is not None:
        raise made.error
    result: Result = made.result
    return result


def has_unanswered_calls() -> bool:
    """Return whether a thread still waits for a storage: Arrow would wait for it at the exit."""
    return any(not call.ended.is_set() for call in _unanswered.values())


def _silence(url: str) -> str:
    return (
        f"The archive at {shown_place(url)} does not answer within {ANSWER_SECONDS:.0f} s: see "
        "whether its storage is up, and whether this machine reaches it."
    )


def file_sizes(url: str, paths: Sequence[str]) -> dict[str, int | None]:
    """Return the size of each file of the archive; None if it is not there."""
    if _is_folder(url):
        return {path: _size(Path(url, path)) for path in paths}
    files, root = _file_system(url)
    infos = files.get_file_info([f"{root}/{path}" for path in paths])
    return {path: info.size for path, info in zip(paths, infos, strict=True)}


def read_file(url: str, path: str) -> bytes | None:
    """Return the content of a small file of the archive; None if it is not there."""
    if _is_folder(url):
        with suppress(FileNotFoundError, NotADirectoryError):
            return Path(url, path).read_bytes()
        return None
    files, root = _file_system(url)
    try:
        with files.open_input_file(f"{root}/{path}") as opened:
            content: bytes = opened.read()
    except FileNotFoundError:
        return None
    return content


def create_file(url: str, path: str, content: bytes) -> None:
    """Create a small file, whole or not at all; an existing file stays as it is.

    Only in a folder is this exclusive. Elsewhere the later of two writers wins, so read it again.
    """
    if _is_folder(url):
        _create_in_folder(Path(url), path, content)
        return
    if read_file(url, path) is None:
        files, root = _file_system(url)
        files.create_dir(f"{root}/{path}".rpartition("/")[0])
        with files.open_output_stream(f"{root}/{path}") as opened:
            opened.write(content)


def _create_in_folder(folder: Path, path: str, content: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target, hidden = folder / path, folder / f".{path}-{token_hex(4)}"
    try:
        with hidden.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(hidden, target)
        except FileExistsError:
            return
        except OSError:
            # A file system without hard links. Two installations that begin there in the same
            # moment both read the file again, and either refuses.
            if not target.exists():
                hidden.rename(target)
        sync_to_disk(folder)
    finally:
        hidden.unlink(missing_ok=True)


def sync_to_disk(path: Path) -> None:
    """Write a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: Path) -> int | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        return path.stat().st_size
    return None


def _is_folder(url: str) -> bool:
    return not urlsplit(url).scheme


@cache
def _file_system(url: str) -> "tuple[fs.FileSystem, str]":
    # Not at the top, because it loads Arrow.
    from delivery.history.archive.storage import file_system_at

    return file_system_at(url)
