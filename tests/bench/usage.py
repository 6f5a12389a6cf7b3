"""The resources used by the processes of a started product, from Linux's /proc."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# A part is recognised by a text in the command line of the processes; `up` is the rest.
PARTS = ("postgres", "granian", "qcluster")
_SOCKET = "socket:["


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    part: str


def tree(pid: int) -> list[Process]:
    """Return a process with all descendants."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for known_pid in _pids():
        children[_parent(known_pid)].append(known_pid)
    found, ahead = [], [pid]
    while ahead:
        found.append(ahead.pop())
        ahead += children[found[-1]]
    return [Process(found_pid, _part(found_pid)) for found_pid in found]


def database(pid: int) -> list[Process]:
    """Return the processes of the PostgreSQL server to which this session's process belongs."""
    return tree(_parent(pid))


def megabytes(processes: Iterable[Process]) -> float:
    """Return the memory of all processes (PSS): shared memory counts once."""
    return sum(_kilobytes(process.pid) for process in processes) / 1024


def computed(processes: Iterable[Process]) -> Counter[str]:
    """Return each part's CPU milliseconds so far; ended processes count for their parent."""
    tick = 1000 // os.sysconf("SC_CLK_TCK")
    found: Counter[str] = Counter()
    for process in processes:
        # User and system time, of the process and of the children waited for.
        found[process.part] += tick * sum(map(int, _stat(process.pid)[11:15]))
    return found


def busy_seconds() -> float:
    """Return the machine's processor time so far for any work, of all cores."""
    # User, nice, system, idle, waiting for disks, interrupts (two), stolen.
    ticks = [int(text) for text in (PROC / "stat").read_text().split(maxsplit=9)[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def local_ports(processes: Iterable[Process], *, to: int) -> set[int]:
    """Return the ports of the connections of these processes to the port of 127.0.0.1."""
    inodes = {inode for process in processes for inode in _sockets(process.pid)}
    found = set()
    for line in (PROC / "net" / "tcp").read_text().splitlines()[1:]:
        _, local, remote, *_, inode = line.split()[:10]
        if inode in inodes and _port(remote) == to:
            found.add(_port(local))
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def _sockets(pid: int) -> Iterator[str]:
    """Yield the inodes of the open sockets of a process; none if it has ended."""
    with suppress(OSError):
        for link in list((PROC / str(pid) / "fd").iterdir()):
            # A descriptor may have been closed meanwhile.
            with suppress(OSError):
                target = str(link.readlink())
                if target.startswith(_SOCKET):
                    yield target[len(_SOCKET) : -1]


def _pids() -> list[int]:
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Return the fields behind the name; none if the process has ended."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return ["0"] * 20
    return text.rpartition(")")[2].split()


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _part(pid: int) -> str:
    try:
        command = (PROC / str(pid) / "cmdline").read_text()
    except OSError:
        return "up"
    return next((part for part in PARTS if part in command), "up")


def _kilobytes(pid: int) -> int:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
