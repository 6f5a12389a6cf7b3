"""A person resubmits a delivery during another change: the second sees the first."""

from functools import partial

import pytest

from delivery.models import Delivery, FailureNotice, JournalEntry, JournalKind, Message, Status
from delivery.publishing import failures
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import Redundant
from delivery.support.resolve import NotResolvedError, cancel_delivery, mark_delivered
from delivery.support.resubmit import Edit, NotResubmittedError, resubmit_delivery, resubmit_edited
from tests.races.transactions import meet
from tests.support import factories
from tests.unit.delivery.publishing.test_failures import failed
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit
from tests.unit.delivery.support.test_resubmit import group, now_of

pytestmark = pytest.mark.django_db(transaction=True)


def kinds() -> list[str]:
    return list(JournalEntry.objects.order_by("id").values_list("kind", flat=True))


def deliver(row: Delivery) -> None:
    """Settle it as the queue lane's sender does, with the siblings."""

    async def scenario(commits: GroupCommit) -> None:
        lane_id = row.lane_id or 0
        await serve_lanes(commits, [lane_id])
        siblings = Redundant(
            lane_id=lane_id, message_id=row.message_id, queue_group=0, delivery_id=row.pk
        )
        await commits.commit(lane_id, settlement(row), siblings)

    with_group_commit(scenario)


def test_of_two_people_one_resubmits_a_delivery() -> None:
    row = factories.delivery(Status.REJECTED)
    again = partial(resubmit_delivery, row.pk, actor="ann")
    assert isinstance(meet(again, again), NotResubmittedError)
    assert now_of(row).status == Status.PENDING
    assert kinds() == [JournalKind.RESUBMITTED]


def test_a_delivery_just_resubmitted_can_be_cancelled() -> None:
    row = factories.delivery(Status.IN_DOUBT)
    assert (
        meet(
            partial(resubmit_delivery, row.pk, actor="ann"),
            partial(cancel_delivery, row.pk, actor="bob"),
        )
        is None
    )
    assert (now_of(row).status, now_of(row).reason) == (Status.CANCELLED, "cancelled by bob")


def test_a_delivery_just_resubmitted_cannot_be_marked_delivered() -> None:
    row = factories.delivery(Status.IN_DOUBT)
    again, mark = (
        partial(resubmit_delivery, row.pk, actor="ann"),
        partial(mark_delivered, row.pk, actor="bob"),
    )
    assert isinstance(meet(again, mark), NotResolvedError)
    assert now_of(row).status == Status.PENDING


def test_a_delivery_just_marked_delivered_cannot_be_resubmitted() -> None:
    row = factories.delivery(Status.IN_DOUBT)
    mark, again = (
        partial(mark_delivered, row.pk, actor="ann"),
        partial(resubmit_delivery, row.pk, actor="bob"),
    )
    assert isinstance(meet(mark, again), NotResubmittedError)
    assert now_of(row).status == Status.DELIVERED


def test_a_delivery_just_resubmitted_gets_no_edited_copy() -> None:
    row = factories.delivery(Status.REJECTED)
    edit = Edit(headers={}, content_type="text/plain", body=b"x")
    again = partial(resubmit_delivery, row.pk, actor="ann")
    assert isinstance(
        meet(again, lambda: resubmit_edited(row, edit, actor="bob")), NotResubmittedError
    )
    assert Message.objects.count() == 1


def test_a_sibling_that_a_sender_is_just_settling_is_waited_for() -> None:
    refused, pending = group(Status.REJECTED, Status.PENDING)

    def settle() -> None:
        # As the sender's statement leaves the row until the commit.
        factories.settle(pending, Status.DELIVERED)

    found = meet(settle, partial(resubmit_delivery, refused.pk, actor="ann"))
    assert isinstance(found, NotResubmittedError)
    assert [now_of(row).status for row in (refused, pending)] == [Status.REJECTED, Status.DELIVERED]


def test_a_sender_settling_a_sibling_sees_a_fresh_resubmission() -> None:
    refused, pending = group(Status.REJECTED, Status.PENDING)
    assert (
        meet(partial(resubmit_delivery, refused.pk, actor="ann"), partial(deliver, pending)) is None
    )
    assert [now_of(row).status for row in (refused, pending)] == [
        Status.REDUNDANT,
        Status.DELIVERED,
    ]


def test_a_failure_being_reported_is_not_reported_twice() -> None:
    row = failed(Status.IN_DOUBT)

    def report() -> None:
        failures.publish_notices(limit=10)

    assert meet(report, partial(resubmit_delivery, row.pk, actor="ann")) is None
    assert Message.objects.filter(event_type__name="Inturn.Delivery.Failed").count() == 1
    assert not FailureNotice.objects.exists()
