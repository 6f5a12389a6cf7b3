"""The database is read-only for a while, as during a fail-over: all parts survive and resume."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from config.embedded.postgres import running_url
from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Hold, Receiver
from tests.system.faults.observed import Observed
from tests.system.faults.promises import outcomes
from tests.system.operation.installation import eventually, kill

_TAKES_CHANGES = "-c default_transaction_read_only=off"


class SwitchableDatabase:
    """The product's database, with the rights of an administrator, who can always write."""

    def __init__(self, product: Product) -> None:
        url = running_url(product.home)
        assert url is not None
        self._url = url

    def take_no_changes(self) -> None:
        """Make the database read-only, and end all sessions: clients have to connect again."""
        with psycopg.connect(self._url, autocommit=True, options=_TAKES_CHANGES) as own:
            self._set(own, "on")
            own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND usename = current_user "
                "AND pid <> pg_backend_pid()"
            )

    def take_changes(self) -> None:
        """Make it writable; open sessions stay read-only, and clients have to notice."""
        with psycopg.connect(self._url, autocommit=True, options=_TAKES_CHANGES) as own:
            self._set(own, "off")

    def _set(self, own: psycopg.Connection, value: str) -> None:
        name = sql.Identifier(own.info.dbname)
        said = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
        own.execute(said.format(name, sql.SQL(value)))


@pytest.fixture
def database(product: Product) -> Iterator[SwitchableDatabase]:
    database = SwitchableDatabase(product)
    try:
        yield database
    finally:
        database.take_changes()


def is_refused(flow: Flow) -> bool:
    """Return whether publishing is refused with the reason and the time to retry."""
    answer = flow.publisher.ask("POST", f"events/{flow.event_type}/messages", body=b"{}")
    reported = answer.json().get("type") == "urn:inturn:problem:database-read-only"
    return reported and answer.status_code == 503 and "retry-after" in answer.headers


def test_a_read_only_database_causes_neither_loss_nor_duplicates(
    product: Product,
    database: SwitchableDatabase,
    flow: Flow,
    receiver: Receiver,
    observed: Observed,
) -> None:
    of, bad = flow.subscribe(receiver.endpoint("a")), product.flow("Bad")
    failing = bad.subscribe(receiver.endpoint("b"))
    failing.endpoint.always(Answer(400))
    reported = {
        "name": "reported",
        "subscriber": flow.subscriber("reported"),
        "event_type": "Inturn.Delivery.Failed",
    }
    reported |= {"mode": "PULL", "header_filter_string": failing.subscriber}
    mailbox = flow.rest.post("subscriptions", reported)["id"]
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    database.take_no_changes()
    # An ended connection is noticed at its next use.
    eventually(lambda: is_refused(flow), "publishing is refused")
    assert not product.is_ready()
    # The receiver answers, and the outcome cannot be recorded: no more is sent.
    hold.release()
    eventually(lambda: len(observed.senders()) == 2, "both senders are connected again")
    database.take_changes()
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == published
    assert [request.redelivery for request in received] == [None] * 3
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 3
    assert outcomes(flow, of, published[0]) == ["SUCCESS"]
    eventually(product.is_ready, "the web server has found out")
    # So have the senders, and the chores, which publish failure notices.
    bad.publish()
    assert bad.wait_until_settled(failing) == ["REJECTED"]
    eventually(
        lambda: list(flow.rest.all("deliveries", subscription=mailbox)), "the failure is reported"
    )


@pytest.mark.slow
def test_deliveries_sent_by_a_sender_that_dies_meanwhile_are_in_doubt(
    database: SwitchableDatabase, flow: Flow, receiver: Receiver, observed: Observed
) -> None:
    of, hold = flow.subscribe(receiver.endpoint("a")), Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(2)
    of.endpoint.wait_for_count(1)
    sender = observed.sender_of(of)
    database.take_no_changes()
    hold.release()
    kill(sender)
    database.take_changes()
    received = of.endpoint.wait_for_count(3)
    assert [request.id for request in received] == [published[n] for n in (0, 0, 1)]
    assert [request.redelivery for request in received] == [None, "in-doubt", None]
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 2
    assert outcomes(flow, of, published[0]) == ["LOST", "SUCCESS"]
