"""The faults of a torture run: one at a time, chosen and dosed by the seed.

A fault notes its begin and end, and excuses the lanes that it may stop for that time.
"""

import threading
from collections.abc import Sequence
from typing import Protocol

from tests.torture import changing, database, freezing, killing
from tests.torture.stage import TortureStage


class TortureFault(Protocol):
    __name__: str

    def __call__(self, stage: TortureStage) -> None: ...


KINDS: Sequence[TortureFault] = (
    killing.kill_sender,
    killing.kill_all_senders,
    killing.kill_web,
    killing.kill_cluster,
    killing.kill_machine,
    killing.second_machine,
    freezing.stop_sender,
    freezing.stop_machine,
    freezing.stop_web,
    database.end_backends,
    database.end_one_sender,
    database.kill_postgres,
    database.restart_postgres,
    database.lock_row,
    database.lock_lane,
    database.lock_table,
    changing.refuse_connections,
    changing.change_endpoint,
    changing.change_pace,
    changing.deactivate,
    changing.hold,
    changing.step_clock,
)


def strike(stage: TortureStage, over: threading.Event) -> None:
    """Cause faults until the run is over; every kind comes before any comes twice."""
    while not over.is_set():
        kinds = list(KINDS)
        stage.chance.shuffle(kinds)
        for kind in kinds:
            if over.wait(stage.chance.uniform(0.5, 2)):
                break
            stage.journal.faults.append(kind.__name__)
            kind(stage)


def end(stage: TortureStage) -> None:
    """Undo lasting faults, and wait until the product is well."""
    if stage.other is not None:
        stage.journal.crash("kill -9 of the second machine, at the end")
        stage.other.kill_all()
        stage.other = None
    stage.wait_until_well()
