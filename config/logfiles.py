"""The files that our processes' output goes to: appended, and never ever growing."""

import os
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024
KEPT = 3


def open_log(folder: Path, name: str) -> BinaryIO:
    """Open `name`.log for appending; a file over MAX_BYTES is first set aside as .1, and so on.

    The size is looked at only here, as a process starts: output is a child's own file
    descriptor and cannot be moved under it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.log"
    if path.exists() and path.stat().st_size > MAX_BYTES:
        _set_aside(path)
    return path.open("ab")


def last_lines(path: Path, count: int = 5) -> str:
    """The end of a log, for an error message."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])


def _set_aside(path: Path) -> None:
    for age in range(KEPT, 1, -1):
        older = path.with_suffix(f".log.{age - 1}")
        if older.exists():
            older.replace(path.with_suffix(f".log.{age}"))
    path.replace(path.with_suffix(".log.1"))
