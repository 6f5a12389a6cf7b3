"""A cancelling batch meets another change of the same deliveries: the first change stays."""

from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from delivery.models import Attempt, BulkVerb, Delivery, Resubmission, Status
from delivery.senders.commits.group_commit import GroupCommit
from delivery.support.bulk_jobs import advance_job, start_job
from delivery.support.resubmit import resubmit_delivery
from tests.races.test_resubmitting import deliver
from tests.races.transactions import meet
from tests.support import factories
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit
from tests.unit.delivery.support.test_resubmit import group, now_of

pytestmark = pytest.mark.django_db(transaction=True)


def job() -> Resubmission:
    every = {"status": ["PENDING", "IN_DOUBT"]}
    return start_job(every, rate=None, actor="ann", verb=BulkVerb.CANCEL)


def work_off() -> None:
    with transaction.atomic():
        advance_job(timezone.now().replace(year=2099))


def settle(row: Delivery) -> None:
    """Settle it as the lane's sender does."""

    async def scenario(commits: GroupCommit) -> None:
        lane_id = row.lane_id or 0
        await serve_lanes(commits, [lane_id])
        await commits.commit(lane_id, settlement(row))

    with_group_commit(scenario)


def test_a_delivery_being_settled_by_a_sender_stays_settled() -> None:
    row = factories.delivery()
    running = job()

    def delivered() -> None:
        # As the sender's statement leaves the row until the commit.
        factories.settle(row, Status.DELIVERED)

    assert meet(delivered, work_off) is None
    running.refresh_from_db()
    assert now_of(row).status == Status.DELIVERED
    assert (running.done, running.changed) == (1, 0)


def test_a_delivery_cancelled_during_its_attempt_stays_cancelled_with_that_attempt() -> None:
    row = factories.delivery()
    job()
    assert meet(work_off, partial(settle, row)) is None
    assert now_of(row).status == Status.CANCELLED
    assert Attempt.objects.get(delivery=row).outcome == "SUCCESS"


def test_a_sibling_of_a_delivery_being_cancelled_can_be_delivered() -> None:
    doubtful, pending = group(Status.IN_DOUBT, Status.PENDING)
    start_job({"status": ["IN_DOUBT"]}, rate=None, actor="ann", verb=BulkVerb.CANCEL)
    assert meet(work_off, partial(deliver, pending)) is None
    assert [now_of(row).status for row in (doubtful, pending)] == [
        Status.CANCELLED,
        Status.DELIVERED,
    ]


def test_deliveries_that_become_in_doubt_are_spared_unless_that_status_was_named() -> None:
    row = factories.delivery()
    running = start_job(
        {"subscriber": row.subscription.subscriber.name},
        rate=None,
        actor="ann",
        verb=BulkVerb.CANCEL,
    )

    def doubted() -> None:
        # As the next sender leaves the row of a dead sender's lane under `hold`.
        factories.settle(row, Status.IN_DOUBT)

    assert meet(doubted, work_off) is None
    running.refresh_from_db()
    assert now_of(row).status == Status.IN_DOUBT
    assert (running.done, running.changed) == (1, 0)


def test_a_delivery_being_resubmitted_is_cancelled_in_its_turn() -> None:
    row = factories.delivery(Status.IN_DOUBT)
    job()
    assert meet(partial(resubmit_delivery, row.pk, actor="bob"), work_off) is None
    assert now_of(row).status == Status.CANCELLED
