"""Which processes belong to us, and how they end: stdlib only.

Every process that `up` starts carries MARKER in its environment, and so does
everything started by it. That finds orphans whatever became of process groups,
sessions and parents. It needs /proc; elsewhere only process groups are left.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MARKER = "INTURN_UP"
PROC = Path("/proc")
# Secrets that `prepare` alone needs. Others would only keep them where they can be read, for as long as they run.
_USED_ONCE = ("INTURN_ADMIN_PASSWORD", "INTURN_BOOTSTRAP_KEY")


def environment(*, postgres: bool = True) -> dict[str, str]:
    """This process's environment, for a child, without `used_once`.

    `postgres=False` leaves PG* out: a user's settings for another server would reach ours.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if (postgres or not name.startswith("PG")) and not _is_used_once(name)
    }


def used_once() -> dict[str, str]:
    """What `prepare` needs beside that."""
    return {name: value for name, value in os.environ.items() if _is_used_once(name)}


def marked(prefix: str) -> set[int]:
    """The living processes but this one whose MARKER starts with the prefix."""
    return having(f"{MARKER}={prefix}")


def having(assignment: str) -> set[int]:
    """The living processes but this one that have a variable which reads so, or goes on from there."""
    wanted = assignment.encode()
    return {
        pid
        for pid in _pids()
        if pid != os.getpid() and any(entry.startswith(wanted) for entry in _environment(pid))
    }


def working_in(folder: Path) -> set[int]:
    """The living processes whose current folder this is: for PostgreSQL, those that serve it."""
    wanted = str(folder.resolve())
    return {pid for pid in _pids() if _current_folder(pid) == wanted}


def is_alive(pid: int) -> bool:
    """Whether the process still runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def send_group(number: signal.Signals, group: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def wait_until(condition: Callable[[], bool], *, seconds: float, pause: float = 0.02) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def end(find: Callable[[], set[int]], steps: Iterable[tuple[signal.Signals, float]]) -> bool:
    """Send each step's signal to whatever is found, until nothing is; False if something stayed."""
    for number, seconds in steps:
        send(number, find())
        if wait_until(lambda: not find(), seconds=seconds):
            return True
    return not find()


def _is_used_once(name: str) -> bool:
    return name.removesuffix("_FILE") in _USED_ONCE


def _pids() -> Iterator[int]:
    if PROC.is_dir():
        yield from (int(name) for name in os.listdir(PROC) if name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _current_folder(pid: int) -> str | None:
    try:
        return os.readlink(PROC / str(pid) / "cwd")
    except OSError:
        return None


def _is_zombie(pid: int) -> bool:
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in "ZX"
