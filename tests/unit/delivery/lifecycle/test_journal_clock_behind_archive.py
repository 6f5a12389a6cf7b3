"""The clock goes back behind the archive's end: later events are archived, not removed before.

Staged the other way round: the archive is ahead of the clock. When the clock has to catch up, all
times are moved back instead.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone
from psycopg.conninfo import make_conninfo
from pytest_django import Settings

from config.retention_days import DEFAULT_DAYS
from delivery.database.connections import connection_parameters
from delivery.lifecycle import journal, transitions
from delivery.maintenance import expiry
from delivery.models import (
    ArchiveChunk,
    Archived,
    Delivery,
    EarlierSettlement,
    JournalEntry,
    JournalKind,
    Message,
    OutcomeClass,
    Status,
)
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from delivery.senders.commits.commit_statements import commit_statements
from delivery.states import OPEN
from delivery.support import resolve
from delivery.verdict import NextStep, Verdict
from tests.support import factories
from tests.unit.delivery.mailbox.box import box
from tests.unit.delivery.maintenance.retaining import is_there, run_whole
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.support.test_resubmit import group

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def until() -> datetime:
    """The end of the archive, an hour ahead of the clock."""
    return Archived.objects.create(pk=1, until=timezone.now() + timedelta(hours=1)).until


def commit(*deliveries: Delivery, status: Status = Status.DELIVERED) -> None:
    """Settle deliveries as a sender does, in one transaction."""
    outcome = OutcomeClass.SUCCESS if status == Status.DELIVERED else OutcomeClass.CLIENT_ERROR
    verdict = Verdict(status=status, step=NextStep.NEXT)
    entries = [settlement(delivery, verdict=verdict, outcome=outcome) for delivery in deliveries]
    with psycopg.connect(make_conninfo(**connection_parameters())) as sender:
        for text, parameters in commit_statements(entries):
            sender.execute(text.encode(), parameters)


def by_a_sender() -> list[Delivery]:
    delivery = factories.delivery()
    commit(delivery)
    return [delivery]


def by_a_sender_with_others() -> list[Delivery]:
    deliveries = [factories.delivery(), factories.delivery()]
    commit(*deliveries, status=Status.REJECTED)
    return deliveries


def cancelled() -> list[Delivery]:
    delivery = factories.delivery()
    transitions.cancel_deliveries([delivery.pk], actor="ann")
    return [delivery]


def expired() -> list[Delivery]:
    delivery = factories.delivery(expires_at=timezone.now() - timedelta(seconds=1))
    with transaction.atomic():
        expiry.settle_overdue(limit=10)
    return [delivery]


def acknowledged() -> list[Delivery]:
    mailbox = box()
    (delivery,) = mailbox.put()
    mailbox.say("ack", mailbox.one())
    return [delivery]


def decided_with_its_siblings() -> list[Delivery]:
    deliveries = group(Status.IN_DOUBT, Status.PENDING)
    resolve.mark_delivered(deliveries[0].pk, actor="ann")
    return deliveries


def of_several_in_doubt() -> list[Delivery]:
    delivery = factories.delivery(Status.IN_DOUBT)
    transitions.cancel_some([delivery.pk], reason="cancelled by ann")
    return [delivery]


WAYS = [
    by_a_sender,
    by_a_sender_with_others,
    cancelled,
    expired,
    acknowledged,
    decided_with_its_siblings,
    of_several_in_doubt,
]


@pytest.mark.parametrize("settle", WAYS)
def test_no_settlement_has_a_time_that_the_archive_has_passed(
    until: datetime, settle: Callable[[], list[Delivery]]
) -> None:
    for delivery in settle():
        delivery.refresh_from_db()
        assert delivery.status not in OPEN
        assert delivery.settled_at == until


def test_no_publication_or_entry_has_a_time_that_the_archive_has_passed(until: datetime) -> None:
    event_type = factories.event_type()
    with transaction.atomic():
        publish_own([Draft(event_type=event_type, headers={}, body=b"{}") for _ in range(2)])
    journal.record_entry(JournalKind.TESTED, "a test", actor="ann")
    assert list(Message.objects.values_list("published_at", flat=True)) == [until] * 2
    assert JournalEntry.objects.get(text="a test").at == until


def test_no_row_has_a_time_that_a_running_export_covers(db: None) -> None:
    ahead = timezone.now() + timedelta(hours=1)
    ArchiveChunk.objects.create(run_id=1, since=timezone.now(), until=ahead)
    (delivery,) = by_a_sender()
    delivery.refresh_from_db()
    assert delivery.settled_at == ahead


def test_a_clock_that_is_ahead_of_the_archive_is_believed(db: None) -> None:
    Archived.objects.create(pk=1, until=timezone.now() - timedelta(hours=1))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp() <= delivery_clock() AND delivery_clock() <= clock_timestamp()"
        )
        assert cursor.fetchone() == (True,)


def test_retention_keeps_it_until_it_is_archived(until: datetime, settings: Settings) -> None:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, retention_days=dict.fromkeys(DEFAULT_DAYS, 0)
    )
    (delivery,) = by_a_sender()
    Message.objects.update(published_at=timezone.now() - timedelta(days=400))
    years_later = timezone.now() + timedelta(days=4000)
    run_whole(years_later)
    assert is_there(delivery)
    Archived.objects.update(until=until + timedelta(seconds=1))
    run_whole(years_later)
    assert not is_there(delivery)
    assert not EarlierSettlement.objects.exists()
