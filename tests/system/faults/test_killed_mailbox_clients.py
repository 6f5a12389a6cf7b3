"""Mailbox clients that hold messages are killed -9; so are the web server and PostgreSQL."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.product import Flow, Product
from tests.system.faults import drained
from tests.system.faults.draining import BATCH, Draining
from tests.system.operation.installation import kill

MESSAGES = 6_000
# 50 clients, including the three that are killed.
CLIENTS = (12, 12, 12, 11)


@pytest.fixture
def draining(flow: Flow, tmp_path: Path) -> Draining:
    return Draining(flow, tmp_path)


def test_messages_held_by_killed_clients_are_acknowledged_once_by_others(
    draining: Draining,
) -> None:
    draining.fill(MESSAGES)
    with ExitStack() as stack:
        victims = [
            stack.enter_context(draining.started(1, holds_after=number)) for number in (1, 3, 9)
        ]
        # Before the others begin: these would leave them nothing on a busy machine.
        held = [victim.wait_until_holding() for victim in victims]
        with draining.drained_by(*CLIENTS):
            draining.wait_until_left(MESSAGES - 500)
            kill(*(victim.pid for victim in victims))
    drained.insist(draining)
    settled = draining.settled()
    for batch in held:
        assert len(batch) == BATCH
        for message, count in batch.items():
            assert settled[message].receive_count > count


@pytest.mark.slow
def test_a_killed_web_server_or_postgresql_costs_clients_only_time(
    draining: Draining, product: Product
) -> None:
    draining.fill(MESSAGES)
    # Looked up beforehand: on a busy machine the mailbox may be drained by the end of a search.
    serving, killed = product.whole("web") - {product.top("web")}, product.postmaster()
    with draining.drained_by(15, 15, 20):
        draining.wait_until_left(5_000)
        kill(*serving)
        # More than were leased at the kill: the web server is back, and queries the database.
        draining.wait_until_left(3_000)
        kill(killed)
        product.wait_for_postgres_after(killed)
    statuses = {status for line in draining.lines("unanswered") for _, status in line["of"]}
    # 0: no answer while there is no web server. 503: no database, with the time to retry.
    assert statuses == {0, 503}
    drained.insist(draining)
