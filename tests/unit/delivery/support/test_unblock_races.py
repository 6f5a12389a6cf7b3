"""A lane or URL that a person resumes or releases just after a sender or another person did."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from delivery.database.connections import connection_parameters
from delivery.models import Delivery, JournalEntry, Lane, LaneState, Status, UrlHealth
from delivery.support import release_url, unblock
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

URL = "https://receiver.example/hook"


@contextmanager
def first(change: str, *, before: str) -> Iterator[None]:
    """Commit a change on another connection right before the statement that begins so."""

    def execute(run: Callable[..., Any], sql: str, *given: Any) -> Any:
        if sql.startswith(before):
            with psycopg.connect(**connection_parameters(), autocommit=True) as other:
                other.execute(change.encode())
        return run(sql, *given)

    with connection.execute_wrapper(execute):
        yield


@pytest.fixture
def lane() -> Lane:
    top = factories.delivery(attempts=5)
    assert top.lane is not None
    Lane.objects.filter(pk=top.lane.pk).update(state=LaneState.SUSPENDED, delivery_id=top.pk)
    return Lane.objects.get(pk=top.lane.pk)


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        (unblock.resume_lane, unblock.NotSuspendedError),
        (unblock.skip_delivery, unblock.NotBlockedError),
    ],
)
def test_a_lane_resumed_by_its_probe_meanwhile_is_unchanged(
    lane: Lane, verb: Callable[..., Any], error: type[Exception]
) -> None:
    resumed = (
        "UPDATE delivery_lane SET state = 'IDLE', delivery_id = NULL WHERE state = 'SUSPENDED'"
    )
    with first(resumed, before='UPDATE "delivery_lane"'), pytest.raises(error):
        verb(lane, actor="ann")
    lane.refresh_from_db()
    assert lane.state == LaneState.IDLE
    top = Delivery.objects.get()
    assert (top.status, top.attempts_before) == (Status.PENDING, 0)
    assert not JournalEntry.objects.exists()


def test_of_two_people_one_releases_a_url() -> None:
    UrlHealth.objects.create(url=URL, state="FROZEN", attempts=9, failures=9)
    released = "UPDATE delivery_urlhealth SET state = 'ENABLED'"
    with first(released, before="SELECT"), pytest.raises(release_url.NotStoppedError):
        release_url.release_url(URL, actor="ann")
    assert UrlHealth.objects.get().attempts == 9
    assert not JournalEntry.objects.exists()
