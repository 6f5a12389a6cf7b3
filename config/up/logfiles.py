"""The files that our processes' output goes to: appended, and never ever growing."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024
KEPT = 3


def open_log(folder: Path, name: str) -> BinaryIO:
    """Open `name`.log for appending: each write goes to the end, also after it was shortened."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("ab")


def shorten(folder: Path) -> None:
    """Set aside what is in logs over MAX_BYTES: as .1, what was .1 as .2, and so on up to KEPT.

    Called again and again while they are written to: it costs little when there is nothing to do.
    """
    for path in folder.glob("*.log"):
        # One that somebody has just moved away is no reason to end.
        with suppress(OSError):
            if path.stat().st_size > MAX_BYTES:
                _set_aside(path)


def last_lines(path: Path, count: int = 5) -> str:
    """The end of a log, for an error message."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])


def _set_aside(path: Path) -> None:
    # A full disk must not keep it from being shortened.
    with suppress(OSError):
        for age in range(KEPT, 1, -1):
            older = _aged(path, age - 1)
            if older.exists():
                older.replace(_aged(path, age))
        shutil.copyfile(path, _aged(path, 1))
    # Not renamed: it is the file descriptor of running processes. What is written between
    # the end of the copy and here, microseconds, is lost.
    os.truncate(path, 0)


def _aged(path: Path, age: int) -> Path:
    return path.with_suffix(f".log.{age}")
