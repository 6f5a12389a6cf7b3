"""The processes of an installation: how to find and end them. Stdlib only.

Every process started by `up`, except the guardian and PostgreSQL, has MARKER in the environment,
inherited by child processes. It finds orphans regardless of process groups, sessions and parents.
It needs /proc; without it only process groups can be ended.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MARKER = "INTURN_UP"
PROC = Path("/proc")
# Secrets for `prepare` only; in other processes they would stay readable while those run.
_USED_ONCE = ("INTURN_ADMIN_PASSWORD", "INTURN_BOOTSTRAP_KEY")


def environment(*, postgres: bool = True) -> dict[str, str]:
    """Return this process's environment for a child, without `used_once`.

    `postgres=False` leaves PG* out, because a user's settings for another server would affect ours.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if (postgres or not name.startswith("PG")) and not _is_used_once(name)
    }


def used_once() -> dict[str, str]:
    """Return the variables for `prepare` only."""
    return {name: value for name, value in os.environ.items() if _is_used_once(name)}


def marked_processes(prefix: str) -> set[int]:
    """Return the other living processes whose MARKER starts with the prefix."""
    return processes_with(f"{MARKER}={prefix}")


def processes_with(assignment: str) -> set[int]:
    """Return the other living processes with an environment entry that starts with `assignment`."""
    wanted = assignment.encode()
    return {
        pid
        for pid in _pids()
        if pid != os.getpid() and any(entry.startswith(wanted) for entry in _environment(pid))
    }


def working_in(folder: Path) -> set[int]:
    """Return the living processes with this working directory: for a data folder, PostgreSQL's."""
    wanted = str(folder.resolve())
    return {pid for pid in _pids() if _current_folder(pid) == wanted}


def is_alive(pid: int) -> bool:
    """Return whether the process runs; False for a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def send_signal(number: signal.Signals, pids: Iterable[int]) -> None:
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
    """Wait for the condition; return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def end_processes(
    find: Callable[[], set[int]], steps: Iterable[tuple[signal.Signals, float]]
) -> bool:
    """Send each step's signal to the found processes until none is left; False if some remain."""
    for number, seconds in steps:
        send_signal(number, find())
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
