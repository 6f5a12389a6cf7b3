"""A restored database: deliveries that may have been sent since its back-up are IN_DOUBT.

Inturn never sends them by itself.
"""

from datetime import timedelta

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from delivery.database.connections import connection_parameters
from delivery.lifecycle.transitions import reopen_deliveries
from delivery.maintenance import restored_database
from delivery.maintenance.restored_database import MarkedRestore, SendersRunningError, mark_restored
from delivery.models import (
    BulkVerb,
    Delivery,
    EndpointHealth,
    JournalEntry,
    LaneState,
    LoggedAttempt,
    Resubmission,
    ResubmissionState,
)
from delivery.states import OutcomeClass, Status
from subscriptions.models import Mode
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture
from tests.unit.delivery.console.blocking import block, suspend

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept_sequences")]


@pytest.fixture(autouse=True)
def _no_sender(db: None) -> None:
    """End the senders' connections of earlier tests: the server notices a closed one later."""
    # In the test's own transaction the view would not change any more.
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        own.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = %s",
            [restored_database.SENDER],
        )


def marked(*, hours: float = 1, nothing_sent_since: bool = False) -> MarkedRestore:
    now = timezone.now()
    return mark_restored(
        made_at=now - timedelta(hours=hours), nothing_sent_since=nothing_sent_since, now=now
    )


def test_every_open_delivery_of_a_lane_is_in_doubt_with_a_lost_attempt() -> None:
    waiting = factories.delivery(attempts=2)
    held = factories.delivery(subscription=factories.subscription(status="HELD"))
    assert marked().in_doubt == 2
    for row, number in ((waiting, 3), (held, 1)):
        row.refresh_from_db()
        assert (row.status, row.attempts, row.redelivery) == (Status.IN_DOUBT, number, "in-doubt")
        assert row.settled_at is not None
        attempt = LoggedAttempt.objects.get(delivery=row, number=number)
        assert attempt.outcome == OutcomeClass.LOST
        assert attempt.error.startswith("restored from a back-up of ")


def test_mailboxes_are_in_doubt_and_a_fetch_under_way_is_an_attempt() -> None:
    mailbox = factories.subscription(mode=Mode.PULL)
    available = factories.delivery(subscription=mailbox)
    fetched = factories.delivery(
        Status.IN_FLIGHT, subscription=mailbox, receive_count=3, attempts=2
    )
    assert marked().in_doubt == 2
    fetched.refresh_from_db()
    available.refresh_from_db()
    assert (available.status, fetched.status) == (Status.IN_DOUBT, Status.IN_DOUBT)
    assert (available.attempts, fetched.attempts) == (0, 3)
    assert not LoggedAttempt.objects.filter(delivery=available).exists()
    assert LoggedAttempt.objects.get(delivery=fetched).outcome == OutcomeClass.UNACKNOWLEDGED


def test_settled_and_volatile_deliveries_stay_as_they_are() -> None:
    settled = [
        factories.delivery(status) for status in (Status.DELIVERED, Status.FAILED, Status.CANCELLED)
    ]
    volatile = factories.delivery(server_started_at=timezone.now() - timedelta(days=1))
    assert marked().in_doubt == 0
    assert [Delivery.objects.get(pk=row.pk).status for row in settled] == [
        row.status for row in settled
    ]
    assert Delivery.objects.get(pk=volatile.pk).status == Status.PENDING


def test_lanes_and_endpoints_begin_anew() -> None:
    lanes = [block(factories.delivery()), suspend(factories.delivery(attempts=5))]
    marked()
    for lane in lanes:
        lane.refresh_from_db()
        assert (lane.state, lane.delivery_id, lane.run_ids) == (LaneState.IDLE, None, [])
    assert not EndpointHealth.objects.exists()


def test_jobs_that_send_are_cancelled() -> None:
    sending, cancelling = (
        Resubmission.objects.create(verb=verb, actor="ann", count=5)
        for verb in (BulkVerb.RESUBMIT, BulkVerb.CANCEL)
    )
    assert marked().jobs == 1
    sending.refresh_from_db()
    cancelling.refresh_from_db()
    assert (sending.state, cancelling.state) == (
        ResubmissionState.CANCELLED,
        ResubmissionState.RUNNING,
    )


def test_new_messages_get_ids_that_were_never_used() -> None:
    old = factories.message()
    reported = marked(hours=48)
    new = factories.message()
    assert new.pk == reported.next_message
    # Two days at a hundred times the rate, of one message a day, and a million.
    assert new.pk - old.pk >= restored_database.IDS_AHEAD
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM delivery_archivefile_id_seq")
        assert cursor.fetchone() >= (restored_database.IDS_AHEAD,)


def test_marking_again_changes_no_delivery() -> None:
    waiting = factories.delivery()
    assert marked().in_doubt == 1
    before = Delivery.objects.get(pk=waiting.pk)
    assert marked().in_doubt == 0
    assert Delivery.objects.get(pk=waiting.pk).settled_at == before.settled_at


def test_a_person_can_resubmit_what_is_in_doubt() -> None:
    mailbox = factories.subscription(mode=Mode.PULL)
    rows = [
        factories.delivery(),
        factories.delivery(subscription=mailbox),
        factories.delivery(Status.IN_FLIGHT, subscription=mailbox, receive_count=1),
    ]
    marked()
    assert len(reopen_deliveries([row.pk for row in rows], reason="by ann")) == 3


def test_the_journal_has_the_restore() -> None:
    factories.delivery()
    marked()
    assert JournalEntry.objects.get().text.endswith("1 open delivery became IN_DOUBT.")


def test_nothing_changes_if_nothing_was_sent_since() -> None:
    waiting = factories.delivery()
    reported = marked(nothing_sent_since=True)
    assert (reported.in_doubt, reported.jobs) == (0, 0)
    assert factories.message().pk == reported.next_message
    assert Delivery.objects.get(pk=waiting.pk).status == Status.PENDING


def test_a_database_in_use_is_refused() -> None:
    with (
        psycopg.connect(**connection_parameters(), application_name=restored_database.SENDER),
        pytest.raises(SendersRunningError, match="stop Inturn everywhere"),
    ):
        marked()


@pytest.mark.parametrize("time", ["yesterday", "2026-01-31T12:00:00"])
def test_the_command_wants_a_time_with_its_zone(time: str) -> None:
    with pytest.raises(CommandError, match=r"2026-01-31T12:00:00\+00:00|add one"):
        call_command("mark_restored", made_at=time)
