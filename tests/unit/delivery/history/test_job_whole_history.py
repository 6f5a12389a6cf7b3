"""The whole pipeline on a real run of the product.

Hundreds of payloads went to good and bad endpoints, as TOPIC and as QUEUE.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.system.flows import webhooks
from tests.system.flows.real_run import RealRun
from tests.system.flows.test_real_queue import QueueRun
from tests.unit.delivery.history.product_history import SECONDS, archive, history

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with an archived history of eleven runs of all payloads of each source."""
    product = Product(tmp_path_factory.mktemp("history"))
    try:
        product.start()
        # Incidents of the refused messages would be published while they are counted.
        with product.connect() as connection:
            connection.execute("UPDATE delivery_incidentrule SET is_on = false")
            # A scheduled verify would leave its own run only the rows since.
            connection.execute("UPDATE delivery_pipelineschedule SET is_on = false")
        for source in webhooks.SOURCES:
            with Receiver() as receiver, Receiver() as refusing, Receiver() as group:
                RealRun(product, receiver, refusing, source=source).run()
                QueueRun(product.flow("RealQueue", kind="QUEUE"), group, source=source).run()
        archive(product)
        yield product
    finally:
        product.kill_all()


def counted(product: Product, table: str, condition: str = "true") -> int:
    with product.connect() as connection:
        row = connection.execute(
            f"SELECT count(*) FROM delivery_{table} WHERE {condition}"  # noqa: S608 - ours
        ).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def archived(product: Product, question: str) -> Any:
    """Query an archived table, named before the colon, through DuckDB; it is `{}` in the query."""
    table, _, asked = question.partition(": ")
    files = Path(product.home, "archive", table, "**", "*.parquet")
    row = duckdb.sql(asked.format(f"read_parquet('{files}')")).fetchone()
    assert row is not None
    return row[0]


def test_the_history_is_proven_archived_once_and_adds_up(product: Product) -> None:
    """One test: run in parallel, each of several tests would start with a run of its own."""
    said = history(product, "all")
    insist_that_every_promise_was_kept(said, product)
    insist_that_all_there_is_was_checked(said, product)
    insist_that_a_foreign_reader_finds_all_of_it_once(product)
    insist_that_its_hours_add_up(product)


def insist_that_every_promise_was_kept(verified: str, product: Product) -> None:
    assert "verdict: proven" in verified
    assert f"deliveries: {counted(product, 'delivery'):,}" in verified
    assert "broken 0" in verified


def insist_that_all_there_is_was_checked(verified: str, product: Product) -> None:
    assert counted(product, "message") >= 2 * sum(
        len(webhooks.read(source)) for source in webhooks.SOURCES
    )
    assert f"attempts: {counted(product, 'attempt'):,}" in verified
    for kind in ("ORDER", "TWICE", "OWED", "GROUP", "GAPS", "STRAY"):
        (line,) = [line for line in verified.splitlines() if f"kind {kind}" in line]
        assert "checked 0" not in line


def insist_that_a_foreign_reader_finds_all_of_it_once(product: Product) -> None:
    assert archived(product, "messages: SELECT count(DISTINCT id) FROM {}") == counted(
        product, "message"
    )
    assert archived(product, "messages: SELECT count(*) FROM {}") == counted(product, "message")
    assert archived(product, "deliveries: SELECT count(*) FROM {}") == counted(
        product, "delivery", "settled_at IS NOT NULL"
    )
    assert archived(
        product, "attempts: SELECT count(DISTINCT (delivery_id, number)) FROM {}"
    ) == counted(product, "attempt")


def insist_that_its_hours_add_up(product: Product) -> None:
    with product.connect() as connection:
        sums = connection.execute(
            "SELECT sum(delivered), sum(rejected), sum(redundant), sum(attempts) "
            "FROM delivery_historyhour"
        ).fetchone()
    statuses = [
        counted(product, "delivery", f"status = '{status}'")
        for status in ("DELIVERED", "REJECTED", "REDUNDANT")
    ]
    assert sums is not None
    assert [int(each) for each in sums] == [*statuses, counted(product, "attempt")]
