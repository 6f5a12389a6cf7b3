"""Changes around the product: its configuration, its clock, an absent receiver."""

import time

from tests.torture.clock import LONGEST_STEP_SECONDS
from tests.torture.killing import kill_all_senders
from tests.torture.records import FaultWindow
from tests.torture.stage import TortureStage


def refuse_connections(stage: TortureStage) -> None:
    with stage.excused("the receiver refuses connections"):
        stage.receiver.refuse_connections()
        stage.let_pass(0.5, 2)
        stage.receiver.accept_connections()


def change_endpoint(stage: TortureStage) -> None:
    lane = stage.chance.choice(stage.lanes)
    url = f"{lane.subscribed.endpoint.url}?changed={stage.chance.randrange(1000)}"
    stage.journal.note(f"endpoint {url}", lane=lane.name)
    stage.patch(f"subscriptions/{lane.subscribed.id}", endpoint=url)


def change_pace(stage: TortureStage) -> None:
    """Change the size of a lane's queue, so that its sender releases it and reads it again."""
    lane = stage.chance.choice(stage.lanes)
    rows = stage.chance.choice([1, 2, 10, 500])
    stage.journal.note(f"max_queued_to_send {rows}", lane=lane.name)
    stage.patch(
        f"subscribers/{lane.subscribed.subscriber}", max_queued_to_send=rows, refill_level=rows // 5
    )


def deactivate(stage: TortureStage) -> None:
    lane = stage.chance.choice(stage.lanes)
    path = f"subscriptions/{lane.subscribed.id}"
    since = stage.journal.note("INACTIVE", lane=lane.name)
    stage.patch(path, status="INACTIVE")
    stage.let_pass(0.5, 3)
    stage.patch(path, status="ACTIVE", backlog="deliver")
    until = stage.journal.note("ACTIVE", lane=lane.name)
    stage.journal.inactive.append(FaultWindow(since, until, lane.name, "INACTIVE"))
    stage.journal.excuse(since, "INACTIVE", lane=lane.name, until=until)


def hold(stage: TortureStage) -> None:
    """Hold a lane's subscription or its subscriber, or all sending, and release it.

    Nothing is lost, and order is kept.
    """
    lane = stage.chance.choice(stage.lanes)
    path, status, of = stage.chance.choice(
        [
            (f"subscriptions/{lane.subscribed.id}", "status", lane.name),
            (f"subscribers/{lane.subscribed.subscriber}", "status", lane.name),
            ("installation", "sending", None),
        ]
    )
    rate = stage.chance.choice([None, 100])
    with stage.excused(f"HELD {path}", lane=of):
        stage.patch(path, **{status: "HELD"})
        stage.let_pass(0.2, 2)
        if stage.chance.random() < 0.5:
            kill_all_senders(stage)
        stage.let_pass(0.2, 2)
        stage.patch(path, **{status: "ACTIVE", "catch_up_rate": rate})


def step_clock(stage: TortureStage) -> None:
    """Set the first machine's clock, PostgreSQL's included, wrong for a while.

    Do nothing if no clock can be staged.
    """
    if stage.clock is None:
        return
    seconds = stage.chance.choice([-LONGEST_STEP_SECONDS, -5, 5, LONGEST_STEP_SECONDS])
    with stage.excused(f"the clock is {seconds} s off"):
        for off in (seconds, 0):
            stage.clock.set_off(off)
            stage.journal.steps.append(time.monotonic())
            if off:
                stage.let_pass(1, 5)
