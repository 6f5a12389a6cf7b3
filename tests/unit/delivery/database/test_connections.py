"""Connections alongside Django's: with the same safeguards, and reconnected when they are lost."""

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import connection

from delivery.database.connections import CHANNEL, connect_sender, connection_parameters
from delivery.lifecycle import notifier, transitions
from delivery.models import Delivery, Lane, LaneState
from delivery.support import resubmit, toggle, unblock
from subscriptions import changes
from subscriptions.models import Policy, Subscription
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

# No notification takes so long.
SECONDS = 30


def test_options_of_the_database_url_hold_for_senders_too(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "sslmode": "disable",
        "sslrootcert": "/somewhere/ca.pem",
        "server_side_binding": False,
    }
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    parameters = connection_parameters()
    assert (parameters["sslmode"], parameters["sslrootcert"]) == ("disable", "/somewhere/ca.pem")
    assert "server_side_binding" not in parameters
    psycopg.connect(**parameters).close()


def test_the_server_ends_sessions_of_a_vanished_machine() -> None:
    async def asking() -> list[str]:
        async with await connect_sender("inturn test") as first:
            cursor = await first.execute(
                "SELECT setting FROM pg_settings WHERE name ~ '^tcp_(keepalives|user)' "
                "ORDER BY name"
            )
            return [row[0] for row in await cursor.fetchall()]

    # Three probes, after five idle seconds, two seconds apart; ten seconds for unacknowledged data.
    assert asyncio.run(asking()) == ["3", "5", "2", "10000"]


@pytest.fixture
def listening() -> Iterator[psycopg.Connection]:
    with psycopg.connect(**connection_parameters(), autocommit=True) as first:
        first.execute(f"LISTEN {CHANNEL}")
        yield first


def received_notifications(listening: psycopg.Connection) -> str:
    return next(iter(listening.notifies(timeout=SECONDS, stop_after=1))).payload


def test_a_notification_that_failed_is_repeated(listening: psycopg.Connection) -> None:
    notifier.notify_of_work([1])
    assert received_notifications(listening) == "work 1"
    listening.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'inturn notifier'"
    )
    notifier.notify_of_work([2])
    assert received_notifications(listening) == "work 2"


def _skip(row: Delivery) -> None:
    assert row.lane is not None
    Lane.objects.filter(pk=row.lane.pk).update(state=LaneState.BLOCKED, delivery_id=row.pk)
    unblock.skip_delivery(row.lane, actor="ann")


def _resubmit(row: Delivery) -> None:
    transitions.cancel_deliveries([row.pk], actor="ann")
    resubmit.resubmit_delivery(row.pk, actor="ann")


def _configure(row: Subscription) -> None:
    changes.record_change(actor="ann", action="changed", instance=row, before=None, after=None)


@pytest.mark.parametrize(
    ("act", "reported"),
    [
        (lambda row: transitions.cancel_deliveries([row.pk], actor="ann"), "nudge"),
        (_skip, "nudge"),
        (_resubmit, "nudge"),
        (lambda row: toggle.deactivate_owner(row.subscription, actor="ann"), "changed"),
        (lambda row: _configure(row.subscription), "changed"),
    ],
    ids=["cancel", "skip", "resubmit", "toggle", "configuration"],
)
def test_actions_of_people_notify_in_their_own_transaction(
    listening: psycopg.Connection, act: Callable[[Delivery], object], reported: str
) -> None:
    """Even if the process dies after its commit: a cancelled delivery is not sent."""
    act(factories.delivery())
    notification = next(iter(listening.notifies(timeout=SECONDS, stop_after=1)))
    assert notification.payload.partition(" ")[0] == reported
    assert notification.pid == connection.connection.info.backend_pid


def _rename(row: Subscription | Policy) -> None:
    row.name += "x"
    row.save(update_fields=["name"])
