"""The worker of chores is killed -9 in the middle of a turn: uncommitted work is done again.

take notices ─▶ store messages ─▶ commit ─▶ the next turn
             1                  2
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest
from psycopg import sql

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Answer, Receiver
from tests.system.operation.installation import eventually, kill

WORKER = re.compile(r"inturn chores (\d+)")
GONE = Answer(410)


class Chores:
    """The workers of chores, as the database sees them."""

    def __init__(self, product: Product) -> None:
        self._product = product

    def worker(self) -> int:
        """Return the process id of the running worker, once there is one."""
        found: list[int] = []

        def is_at_work() -> bool:
            found[:] = self._found()
            return bool(found)

        eventually(is_at_work, "a worker does chores")
        return found[0]

    @contextmanager
    def stopped_at(self, table: str, row_id: int | None, *, column: str = "id") -> Iterator[None]:
        """Lock a row against changes and references; kill the worker once it needs the row."""
        with self._product.connect() as connection, connection.transaction():
            query = sql.SQL("SELECT FROM {} WHERE {} = %s FOR UPDATE").format(
                sql.Identifier(table), sql.Identifier(column)
            )
            connection.execute(query, [row_id])
            yield
            kill(self.waiting_for(connection.info.backend_pid))

    def waiting_for(self, backend: int) -> int:
        """Return the process id of the worker that waits for a connection's locks, once it does."""
        waiting: list[int] = []

        def is_waited_for() -> bool:
            waiting[:] = self._found(waiting_for=backend)
            return bool(waiting)

        eventually(is_waited_for, "the worker waits for us")
        return waiting[0]

    def _found(self, *, waiting_for: int | None = None) -> list[int]:
        with self._product.connect() as connection:
            rows = connection.execute(
                "SELECT application_name FROM pg_stat_activity"
                " WHERE %(pid)s::int IS NULL OR %(pid)s = ANY (pg_blocking_pids(pid))",
                {"pid": waiting_for},
            ).fetchall()
        return [int(found[1]) for (name,) in rows if (found := WORKER.match(name))]


@pytest.fixture
def chores(product: Product) -> Chores:
    return Chores(product)


def refusing(flow: Flow, receiver: Receiver) -> StartedSubscription:
    of = flow.subscribe(receiver.endpoint("hook"))
    of.endpoint.always(GONE)
    return of


def notices(product: Product) -> int:
    with product.connect() as connection:
        row = connection.execute("SELECT count(*) FROM delivery_failurenotice").fetchone()
    assert row is not None
    count: int = row[0]
    return count


def wait_until_done(flow: Flow, address: str, count: int) -> None:
    eventually(lambda: flow.rest.get(address)["done"] >= count, f"{count} are sent again")


def test_each_failure_is_reported_once_whenever_the_chores_die(
    flow: Flow, receiver: Receiver, chores: Chores, product: Product
) -> None:
    of = refusing(flow, receiver)
    reported = flow.subscribe(
        receiver.endpoint("reported"),
        event_type="Inturn.Delivery.Failed",
        header_filter_string=of.subscriber,
    )
    for _ in range(3):
        # The notices are taken and the messages stored, without their deliveries.
        with chores.stopped_at("subscriptions_subscription", reported.id):
            flow.publish_numbered(5)
    # And once more at any moment.
    flow.publish_numbered(5)
    kill(chores.worker())
    flow.wait_until_settled(of)
    eventually(lambda: notices(product) == 0, "all failures are reported")
    requests = reported.endpoint.wait_for_count(20)
    found = Counter(orjson.loads(request.body)["delivery"] for request in requests)
    assert found == Counter(delivery["id"] for delivery in flow.deliveries(of))


@pytest.mark.slow
def test_a_backlog_is_cancelled_unsent_whenever_the_chores_die(
    flow: Flow, receiver: Receiver, chores: Chores, product: Product
) -> None:
    of = flow.subscribe(receiver.endpoint("hook"))
    of.endpoint.always(Answer(503))
    published = flow.publish_numbered(1000) + flow.publish_numbered(400)
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "INACTIVE"})
    eventually(lambda: flow.lane(of)["state"] == "IDLE", "its sender holds nothing of it")
    of.endpoint.always(OK)
    tried = len(of.endpoint.received)
    with product.connect() as connection, connection.transaction():
        # The second batch has to wait for this lock.
        last = "SELECT max(id) FROM delivery_delivery WHERE subscription_id = %s"
        connection.execute(f"SELECT FROM delivery_delivery WHERE id = ({last}) FOR UPDATE", [of.id])
        fields = {"status": "ACTIVE", "backlog": "cancel"}
        address = (
            f"cancellations/{flow.rest.patch(f'subscriptions/{of.id}', fields)['cancellation']}"
        )
        fresh = flow.publish_numbered(3)
        kill(chores.waiting_for(connection.info.backend_pid))
        assert flow.rest.get(address)["done"] == 1000
    received = of.endpoint.wait_for_count(tried + 3)
    assert [request.id for request in received[tried:]] == fresh
    assert flow.rest.get(address)["cancelled"] == len(published)
    assert flow.wait_until_settled(of) == ["CANCELLED"] * len(published) + ["DELIVERED"] * 3


@pytest.mark.slow
def test_a_resubmission_continues_after_a_crash(
    flow: Flow, receiver: Receiver, chores: Chores
) -> None:
    of = refusing(flow, receiver)
    published = flow.publish_numbered(120)
    flow.wait_until_settled(of)
    of.endpoint.always(OK)
    fields = {"filter": {"subscriber": of.subscriber}, "rate": 40}
    address = f"resubmissions/{flow.rest.post('resubmissions', fields)['id']}"
    for done in (40, 80):
        wait_until_done(flow, address, done)
        kill(chores.worker())
    eventually(lambda: flow.rest.get(address)["state"] == "DONE", "the resubmission is done")
    job = flow.rest.get(address)
    assert (job["done"], job["resubmitted"]) == (120, 120)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 120
    assert [request.id for request in of.endpoint.accepted] == published
