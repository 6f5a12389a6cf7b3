"""Faults of the database: closed connections, a killed server, and locks of other sessions."""

import signal

import psycopg
from psycopg.errors import DeadlockDetected

from config.up import processes
from tests.system.operation.installation import eventually
from tests.torture.stage import TortureStage

_END = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)


def end_backends(stage: TortureStage) -> None:
    stage.journal.crash("pg_terminate_backend of every connection")
    stage.execute(f"{_END} AND usename = current_user")


def end_one_sender(stage: TortureStage) -> None:
    """End one sender's session: it connects again and keeps its lanes unless another took them."""
    if pids := stage.senders():
        stage.journal.crash(f"pg_terminate_backend of sender {pids[0]}")
        stage.execute(f"{_END} AND application_name LIKE %s", [f"inturn sender {pids[0]} %"])


def kill_postgres(stage: TortureStage) -> None:
    _end_postgres(stage, signal.SIGKILL, "kill -9 of the postmaster")


def restart_postgres(stage: TortureStage) -> None:
    _end_postgres(stage, signal.SIGINT, "orderly restart of PostgreSQL")


def _end_postgres(stage: TortureStage, number: signal.Signals, reason: str) -> None:
    postmaster = stage.product.postmaster()
    if postmaster is None:
        return
    with stage.excused(reason):
        stage.journal.crash(reason)
        processes.send_signal(number, [postmaster])
        eventually(lambda: stage.product.postmaster() not in (None, postmaster), "another server")
        eventually(lambda: _answers(stage), "it answers")
    stage.wait_until_well()


def _answers(stage: TortureStage) -> bool:
    try:
        return bool(stage.execute("SELECT 1"))
    except psycopg.OperationalError:
        return False


def lock_row(stage: TortureStage) -> None:
    """Lock the row of one open delivery: only its own lane may wait for it."""
    with stage.product.connect() as connection, connection.transaction():
        row = connection.execute(
            "SELECT delivery.id, subscription.name FROM delivery_delivery delivery"
            " JOIN subscriptions_subscription subscription "
            "ON subscription.id = delivery.subscription_id "
            "WHERE delivery.status = 'PENDING' AND subscription.name = ANY (%s)"
            " LIMIT 1 FOR UPDATE OF delivery SKIP LOCKED",
            [[lane.name for lane in stage.lanes]],
        ).fetchone()
        if row is not None:
            with stage.excused(f"the row of delivery {row[0]} is locked", lane=row[1]):
                stage.let_pass(1, 12)


def lock_lane(stage: TortureStage) -> None:
    """Lock the row of one lane."""
    lane = stage.chance.choice([lane for lane in stage.lanes if lane.role.is_serial])
    with stage.product.connect() as connection, connection.transaction():
        connection.execute(
            "SELECT FROM delivery_lane lane JOIN subscriptions_subscriber owner "
            "ON owner.id = lane.subscriber_id "
            "WHERE owner.name = %s FOR NO KEY UPDATE OF lane",
            [lane.subscribed.subscriber],
        )
        with stage.excused("the row of the lane is locked", lane=lane.name):
            stage.let_pass(1, 12)


def lock_table(stage: TortureStage) -> None:
    """Lock a table; lock it again if PostgreSQL ends this transaction because of a deadlock.

    Partitions are locked one after the other, and a statement of the product may have locked some
    of them already.
    """
    table = stage.chance.choice(["delivery_delivery", "delivery_lane", "delivery_shard"])
    seconds = stage.chance.uniform(0.5, 4)
    with stage.excused(f"LOCK TABLE {table}"):
        while not _lock_for(stage, table, seconds):
            pass


def _lock_for(stage: TortureStage, table: str, seconds: float) -> bool:
    """Return False after a deadlock."""
    try:
        with stage.product.connect() as connection, connection.transaction():
            connection.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            stage.let_pass(seconds, seconds)
            return True
    except DeadlockDetected:
        return False
