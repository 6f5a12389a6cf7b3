"""The folder for the files of one Spark session: rows that do not fit, and what its JVM unpacks.

Spark removes them when the JVM ends, but not when the JVM is killed. So each session has a separate
folder, which is removed with the session. If the process is killed, the next session removes the
folder.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "session-"
# The lock of the process using the folder.
_IN_USE = "in-use"
# The lock for creating a folder and removing abandoned ones.
_CHANGING = "sessions.lock"


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent`, which is made; only the owner may look into it."""
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / _CHANGING).open("w") as changing:
        fcntl.flock(changing, fcntl.LOCK_EX)
        for folder in parent.glob(f"{_PREFIX}*"):
            _remove_abandoned(folder)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # The kernel releases the lock when this process ends.
        in_use = _opened(folder)
        fcntl.flock(in_use, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(in_use)


def _remove_abandoned(folder: Path) -> None:
    try:
        in_use = _opened(folder)
    except OSError:  # removed at this moment
        return
    try:
        fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(in_use)


def _opened(folder: Path) -> int:
    return os.open(folder / _IN_USE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, mode=0o600)
