"""Log files for the output of our processes: appended to, and bounded in size."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024
KEPT = 3
STDOUT = 1


def open_log(folder: Path | None, name: str) -> BinaryIO:
    """Open `name`.log for appending: each write goes to the end, even in a shortened file.

    Without a folder the output goes to this process's standard output, as containers expect it.
    """
    if folder is None:
        return os.fdopen(os.dup(STDOUT), "ab")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (folder / f"{name}.log").open("ab")


def rotate_logs(folder: Path) -> None:
    """Rotate logs over MAX_BYTES: the content to .1, the old .1 to .2, and so on up to KEPT.

    Called repeatedly while processes write to the logs; cheap if no log is too long.
    """
    for path in folder.glob("*.log"):
        # A log moved away just now is no reason to fail.
        with suppress(OSError):
            if path.stat().st_size > MAX_BYTES:
                _set_aside(path)


def last_lines(path: Path, count: int = 5) -> str:
    """Return the last lines of a log, for an error message."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
        return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])


def _set_aside(path: Path) -> None:
    # Shorten the log even if a full disk prevents the copy.
    with suppress(OSError):
        for age in range(KEPT, 1, -1):
            older = _aged(path, age - 1)
            if older.exists():
                older.replace(_aged(path, age))
        shutil.copyfile(path, _aged(path, 1))
    # Truncated, not renamed, because running processes have it open. Output written in the
    # microseconds between the end of the copy and here is lost.
    os.truncate(path, 0)


def _aged(path: Path, age: int) -> Path:
    return path.with_suffix(f".log.{age}")
