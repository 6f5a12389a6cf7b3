"""Faults that freeze processes.

Another sender serves the lanes of a frozen one, which must not touch them when it wakes up.
"""

import signal
import time
from pathlib import Path

from config.up import processes
from tests.system.operation.installation import eventually
from tests.torture.records import PUBLISHERS, Woken
from tests.torture.stage import TortureStage

_SESSION = (
    "SELECT extract(epoch FROM backend_start)::float8 FROM pg_stat_activity "
    "WHERE application_name LIKE %s"
)


def stop_sender(stage: TortureStage) -> None:
    """Freeze a sender: its lanes flow again within 10 s, however long it is frozen."""
    if pids := stage.senders():
        _stop(stage, pids[0], f"SIGSTOP of sender {pids[0]}")


def _stop(stage: TortureStage, pid: int, reason: str) -> None:
    since = stage.journal.crash(reason)
    # The excuse has no duration, since the oracle allows some seconds after each: the fault may
    # last longer than its effect.
    stage.journal.excuse(since, reason, until=since)
    processes.send_signal(signal.SIGSTOP, [pid])
    stage.let_pass(2, 15)
    has_session = bool(_connected_at(stage, pid))
    ports = _ports(pid, stage.receiver.port)
    woke_at = stage.journal.note(f"… {reason}: over")
    processes.send_signal(signal.SIGCONT, [pid])
    if not has_session:
        stage.journal.woken.append(_watch(stage, pid, woke_at, ports))


def _watch(stage: TortureStage, pid: int, woke_at: float, ports: set[int]) -> Woken:
    """Wait until the woken sender is connected again, or has ended."""
    connected_at: list[float] = []

    def is_connected() -> bool:
        ports.update(_ports(pid, stage.receiver.port))
        connected_at.extend(_connected_at(stage, pid))
        return bool(connected_at) or not processes.is_alive(pid)

    eventually(is_connected, "the woken sender is at work")
    until = min(connected_at, default=time.monotonic())
    stage.journal.note(f"sender {pid} is connected again, {until - woke_at:.3f} s after it woke")
    return Woken(woke_at, until, frozenset(ports))


def _connected_at(stage: TortureStage, pid: int) -> list[float]:
    """Return the moments at which the sender's sessions began."""
    since = time.time() - time.monotonic()
    return [at - since for (at,) in stage.execute(_SESSION, [f"inturn sender {pid} %"])]


def _ports(pid: int, remote: int) -> set[int]:
    """Return the local ports of the process's connections to that port of this machine."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            inodes.add(descriptor.readlink().name)
        except OSError:
            continue
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, there, *rest = line.split()
        if int(there.rpartition(":")[2], 16) == remote and f"socket:[{rest[6]}]" in inodes:
            found.add(int(local.rpartition(":")[2], 16))
    return found


def stop_machine(stage: TortureStage) -> None:
    """Freeze the whole second machine or, without one, all senders of the first."""
    reason = "SIGSTOP of the second machine" if stage.other else "SIGSTOP of all senders"
    pids = stage.other.processes() if stage.other else set(stage.senders())
    since = stage.journal.crash(reason)
    processes.send_signal(signal.SIGSTOP, pids)
    stage.let_pass(2, 12)
    processes.send_signal(signal.SIGCONT, pids)
    stage.journal.note(f"… {reason}: over")
    stage.journal.excuse(since, reason, until=since if stage.other else None)


def stop_web(stage: TortureStage) -> None:
    """Freeze the web server: publishers wait, lanes flow."""
    pids = stage.product.whole("web")
    since = stage.journal.note("SIGSTOP of the web server")
    processes.send_signal(signal.SIGSTOP, pids)
    stage.let_pass(1, 5)
    processes.send_signal(signal.SIGCONT, pids)
    stage.journal.note("… SIGSTOP of the web server: over")
    stage.journal.excuse(since, "SIGSTOP of the web server", lane=PUBLISHERS)
