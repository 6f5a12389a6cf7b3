"""A delivery in doubt waits for a person, who marks it as received, or as not wanted."""

import pytest

from delivery.models import Delivery, JournalEntry, JournalKind, Status
from delivery.states import OPEN
from delivery.support.resolve import NotResolvedError, cancel_delivery, mark_delivered
from tests.support import factories
from tests.unit.delivery.support.test_resubmit import group, now_of

ACTOR = "ann"

pytestmark = pytest.mark.django_db


def test_a_received_message_is_marked_delivered() -> None:
    row = factories.delivery(Status.IN_DOUBT)
    mark_delivered(row.pk, actor=ACTOR)
    after = now_of(row)
    assert (after.status, after.reason) == (
        Status.DELIVERED,
        "in doubt, marked as delivered by ann",
    )
    assert after.settled_at is not None
    entry = JournalEntry.objects.get()
    assert (entry.kind, entry.actor, entry.delivery_id) == (JournalKind.RESOLVED, ACTOR, row.pk)


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.IN_DOUBT}))
def test_only_deliveries_in_doubt_are_marked(status: Status) -> None:
    row = factories.delivery(status)
    with pytest.raises(NotResolvedError, match=f"It is {status}"):
        mark_delivered(row.pk, actor=ACTOR)
    assert now_of(row).status == status
    assert not JournalEntry.objects.exists()


def test_pending_siblings_of_a_received_message_are_redundant() -> None:
    doubtful, pending, refused = group(Status.IN_DOUBT, Status.PENDING, Status.REJECTED)
    other = factories.delivery(
        message=doubtful.message, queue_group=1, subscription=pending.subscription
    )
    mark_delivered(doubtful.pk, actor=ACTOR)
    found = [now_of(row).status for row in (doubtful, pending, refused, other)]
    assert found == [Status.DELIVERED, Status.REDUNDANT, Status.REJECTED, Status.PENDING]


def test_a_group_with_a_delivered_member_gets_no_second() -> None:
    doubtful, _ = group(Status.IN_DOUBT, Status.DELIVERED)
    with pytest.raises(NotResolvedError, match="Another endpoint"):
        mark_delivered(doubtful.pk, actor=ACTOR)
    assert now_of(doubtful).status == Status.IN_DOUBT
    assert not JournalEntry.objects.exists()


def test_a_cancelled_delivery_in_doubt_frees_its_siblings() -> None:
    doubtful, pending = group(Status.IN_DOUBT, Status.PENDING)
    cancel_delivery(doubtful.pk, actor=ACTOR)
    assert (now_of(doubtful).status, now_of(pending).status) == (Status.CANCELLED, Status.PENDING)
    assert JournalEntry.objects.get().kind == JournalKind.RESOLVED


def test_a_pending_delivery_can_be_cancelled() -> None:
    row = factories.delivery()
    cancel_delivery(row.pk, actor=ACTOR)
    assert Delivery.objects.get().status == Status.CANCELLED
    assert JournalEntry.objects.get().kind == JournalKind.CANCELLED


@pytest.mark.parametrize("status", sorted(set(Status) - {*OPEN, Status.IN_DOUBT}))
def test_a_settled_delivery_is_unchanged(status: Status) -> None:
    row = factories.delivery(status)
    with pytest.raises(NotResolvedError, match=f"It is {status}"):
        cancel_delivery(row.pk, actor=ACTOR)
    assert now_of(row).status == status
