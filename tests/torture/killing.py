"""Faults that end processes."""

import signal

from config.up import processes
from tests.torture.stage import TortureStage


def kill_sender(stage: TortureStage) -> None:
    if pids := stage.senders():
        stage.journal.crash(f"kill -9 of sender {pids[0]}")
        processes.send_signal(signal.SIGKILL, [pids[0]])


def kill_all_senders(stage: TortureStage) -> None:
    pids = stage.senders()
    stage.journal.crash(f"kill -9 of the senders {pids}")
    processes.send_signal(signal.SIGKILL, pids)


def kill_web(stage: TortureStage) -> None:
    stage.journal.note("kill -9 of the web server")
    processes.send_signal(signal.SIGKILL, stage.product.whole("web"))


def kill_cluster(stage: TortureStage) -> None:
    """Kill senders and chores with the process that would restart them."""
    stage.journal.crash("kill -9 of the cluster")
    processes.send_signal(signal.SIGKILL, stage.product.whole("cluster"))
    stage.wait_until_well()


def kill_machine(stage: TortureStage) -> None:
    """Kill all processes of the first machine, PostgreSQL included, and start it again."""
    with stage.excused("kill -9 of the first machine"):
        stage.journal.crash("kill -9 of the first machine")
        stage.product.kill_all()
        stage.product.start()
    stage.wait_until_well()


def second_machine(stage: TortureStage) -> None:
    """Start another installation on the same database, or kill or stop the existing one."""
    if stage.other is None:
        stage.start_other()
        return
    if stage.chance.random() < 0.5:
        stage.journal.crash("kill -9 of the second machine")
    else:
        stage.journal.note("orderly stop of the second machine")
        stage.other.stop()
        stage.journal.note("the second machine has stopped")
    stage.other.kill_all()
    stage.other = None
