"""A success whose answer is malformed is a success, with a logged attempt."""

import pytest

from delivery.models import Attempt, OutcomeClass, Status
from delivery.senders.commits.group_commit import GroupCommit
from tests.support import factories
from tests.unit.delivery.senders.entries import settlement
from tests.unit.delivery.senders.running import serve_lanes, with_group_commit

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_success_with_a_malformed_answer_is_delivered_and_its_attempt_says_so() -> None:
    row = factories.delivery()
    note = "its answer is malformed: bytes after its end"

    async def scenario(commits: GroupCommit) -> None:
        await serve_lanes(commits, [row.lane_id or 0])
        await commits.commit(row.lane_id or 0, settlement(row, status_code=204, error=note))

    with_group_commit(scenario)
    row.refresh_from_db()
    assert (row.status, row.reason) == (Status.DELIVERED, f"204: {note}")
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.status_code, attempt.error) == (
        OutcomeClass.SUCCESS,
        204,
        note,
    )
