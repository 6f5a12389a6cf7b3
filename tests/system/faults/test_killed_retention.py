"""The worker of chores is killed -9 in the middle of a pass: uncommitted batches stay, and the next
worker continues.

lock a batch ─▶ delete it ─▶ write the position ─▶ commit ─▶ the next batch
                                                1
lock a range ─▶ drop it   ─▶ write the position ─▶ commit ─▶ the next range
                                                2
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from psycopg import sql

from delivery.maintenance import retention
from delivery.maintenance.duty import Duty
from tests.support.product import Flow, Product
from tests.support.receivers import Receiver
from tests.system.faults.test_killed_chores import Chores, notices
from tests.system.operation.installation import eventually

COUNT = 6_000
TABLES = (
    "delivery",
    "attempt",
    "callback",
    "lane",
    "resubmission",
    "failurenotice",
    "idempotencykey",
)
PUBLISHED = """
    SELECT FROM delivery_message JOIN subscriptions_eventtype AS e ON e.id = event_type_id
    WHERE NOT starts_with(e.name, 'Inturn.')
"""
OLD = """
    WITH messages AS (
        INSERT INTO delivery_message (event_type_id, headers, content_type, body, published_at)
        SELECT event_type_id, '{}', '', '', now() - interval '60 days'
        FROM subscriptions_subscription, generate_series(1, %(count)s)
        WHERE id = %(subscription)s
        RETURNING id
    ), deliveries AS (
        INSERT INTO delivery_delivery (
            id, message_id, subscription_id, status, attempts, skipped, redelivery, reason,
            receive_count, settled_at
        )
        SELECT
            id << 20, id, %(subscription)s, %(status)s, 1, false, '', '', 0,
            now() - %(days)s * interval '1 day'
        FROM messages
        RETURNING id
    )
    INSERT INTO delivery_loggedattempt (delivery_id, number, started_at, outcome, error, excerpt)
    SELECT id, 1, now() - %(days)s * interval '1 day', 'SUCCESS', '', '' FROM deliveries
"""


@pytest.fixture
def archived(product: Product) -> Iterator[None]:
    with product.connect() as connection:
        connection.execute(
            "INSERT INTO delivery_archived (id, until) VALUES (1, now() - interval '1 day')"
        )
    yield
    with product.connect() as connection:
        connection.execute("DELETE FROM delivery_archived")


def rows(product: Product) -> Counter[str]:
    """Return the number of rows of each table, without messages that the product publishes.

    Earlier tests have stopped lanes, whose incidents open and close at any time.
    """
    counted = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {}, count(*) FROM {}").format(table, sql.Identifier(f"delivery_{table}"))
        for table in TABLES
    )
    counted += sql.SQL(" UNION ALL SELECT 'message', count(*) FROM ({}) AS published").format(
        sql.SQL(PUBLISHED)
    )
    with product.connect() as connection:
        return Counter(dict(connection.execute(counted).fetchall()))


def kill_as_it_commits(chores: Chores, run_id: int) -> None:
    """Kill the worker when a whole batch is deleted, and it is about to write the pass's
    position.
    """
    with chores.stopped_at("delivery_retentionrun", run_id):
        pass


def test_each_message_is_removed_once_and_no_other(
    flow: Flow, receiver: Receiver, product: Product, archived: None
) -> None:
    chores = Chores(product)
    of = flow.subscribe(receiver.endpoint("hook"))
    kept = flow.publish_numbered(20)
    flow.wait_until_settled(of)
    eventually(lambda: notices(product) == 0, "failures of earlier tests are reported")
    before = rows(product)
    with product.connect() as connection:
        for status, count in (("DELIVERED", COUNT), ("FAILED", 50)):
            connection.execute(
                OLD, {"count": count, "subscription": of.id, "status": status, "days": 59}
            )
    begun = flow.rest.post("retention-runs")
    address = f"retention-runs/{begun['id']}"
    for removed in (1, COUNT // 3):
        # It is called within this turn of the loop.
        eventually(
            lambda: flow.rest.get(address)["messages"] >= removed,  # noqa: B023
            "some are removed",
        )
        kill_as_it_commits(chores, begun["id"])
        assert flow.rest.get(address)["state"] == "RUNNING"
    eventually(lambda: flow.rest.get(address)["state"] == "DONE", "the pass goes on to its end")
    run = flow.rest.get(address)
    assert (run["messages"], run["deliveries"], run["attempts"], run["share"]) == (
        COUNT,
        COUNT,
        COUNT,
        1,
    )
    assert rows(product) - before == Counter(message=50, delivery=50, attempt=50)
    assert before - rows(product) == Counter()
    assert all(flow.rest.get(f"messages/{id}")["id"] == id for id in kept)


@pytest.mark.slow
def test_a_range_is_dropped_once_with_all_its_messages_or_not_at_all(
    flow: Flow, receiver: Receiver, product: Product, archived: None
) -> None:
    chores = Chores(product)
    of = flow.subscribe(receiver.endpoint("hook"))
    flow.publish_numbered(20)
    flow.wait_until_settled(of)
    before = rows(product)
    first = fill_a_range(product, of.id)
    later = flow.publish_numbered(5)
    flow.wait_until_settled(of)
    with product.connect() as connection:
        # The worker does not begin before the pass has reached the range, and its row is locked.
        duty = Duty("retention", retention.advance_pass).key
        connection.execute("SELECT pg_advisory_lock(%s)", [duty])
        begun = flow.rest.post("retention-runs")["id"]
        connection.execute(
            "UPDATE delivery_retentionrun SET position = %s WHERE id = %s", [first - 1, begun]
        )
        with chores.stopped_at("delivery_retentionrun", begun):
            connection.execute("SELECT pg_advisory_unlock(%s)", [duty])
    assert (rows(product) - before)["message"] == COUNT + 5

    def is_gone() -> bool:
        # A pass leaves a range in use for later: autovacuum may be working on it.
        if flow.rest.get(f"retention-runs/{begun}")["state"] == "DONE":
            flow.rest.ask("POST", "retention-runs")
        with product.connect() as connection:
            found = connection.execute("SELECT to_regclass(%s)", [f"delivery_message_{first}"])
            return found.fetchone() == (None,)

    eventually(is_gone, "the range is dropped")
    with product.connect() as connection:
        removed = connection.execute(
            "SELECT sum(messages), sum(deliveries), sum(attempts) FROM delivery_retentionrun "
            "WHERE id >= %s",
            [begun],
        ).fetchone()
    assert removed == (COUNT, COUNT, COUNT)
    assert (rows(product) - before)["message"] == 5
    assert all(flow.rest.get(f"messages/{id}")["id"] == id for id in later)


def fill_a_range(product: Product, subscription: int) -> int:
    """Create a range of removable messages behind the newest one; return its first id."""
    with product.connect() as connection:
        found = connection.execute("SELECT max(until_id) FROM delivery_messagerange").fetchone()
        assert found is not None
        first: int = found[0]
        connection.execute("SELECT delivery_make_range(%s, %s)", [first, first + COUNT])
        connection.execute("SELECT setval('delivery_message_id_seq', %s, false)", [first])
        connection.execute(
            OLD, {"count": COUNT, "subscription": subscription, "status": "DELIVERED", "days": 30.5}
        )
    return first
