"""Releases while another session has locked the row of one lane: the other lanes do not wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from delivery.database.connections import connection_parameters
from delivery.incoming.problems import problem_of
from delivery.models import Lane
from delivery.support import held_objects, releases, toggle
from delivery.support.toggle import Release
from subscriptions.models import Subscriber
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lanes() -> list[Lane]:
    return [Lane.objects.get(subscriber=factories.subscriber()) for _ in range(2)]


@contextmanager
def locked(lane: Lane) -> Iterator[None]:
    with psycopg.connect(**connection_parameters()) as other:
        other.execute("SELECT FROM delivery_lane WHERE id = %s FOR NO KEY UPDATE", [lane.pk])
        yield


def rates(lanes: list[Lane]) -> list[float | None]:
    return [Lane.objects.get(pk=lane.pk).catch_up_rate for lane in lanes]


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_objects, "LOCK_MILLISECONDS", 10)


def test_a_locked_lane_keeps_its_rate_until_it_is_free(lanes: list[Lane]) -> None:
    toggle.hold_owner(held_objects.installation(), actor="ann")
    toggle.activate_owner(held_objects.installation(), actor="ann", catch_up_rate=5)
    with locked(lanes[1]), transaction.atomic(), connection.cursor() as cursor:
        # A duty that waits for the lock would hold the first lane's row meanwhile.
        cursor.execute("SET LOCAL lock_timeout = '10ms'")
        assert releases.end_catching_up() == 1
    assert rates(lanes) == [None, 5]
    assert releases.end_catching_up() == 1
    assert rates(lanes) == [None, None]


def test_all_sending_stays_held_while_a_lane_is_locked(lanes: list[Lane]) -> None:
    toggle.hold_owner(held_objects.installation(), actor="ann")
    with locked(lanes[1]), pytest.raises(OperationalError) as error:
        toggle.activate_owner(held_objects.installation(), actor="ann", catch_up_rate=5)
    problem = problem_of(error.value)
    assert problem is not None
    assert (problem.status_code, problem.code) == (503, "row-locked")
    assert held_objects.installation().sending == "HELD"
    assert rates(lanes) == [None, None]
    toggle.activate_owner(held_objects.installation(), actor="ann", catch_up_rate=5)
    assert rates(lanes) == [5, 5]


def test_holds_that_need_no_locked_lane_are_released(lanes: list[Lane]) -> None:
    over = Release(until=timezone.now() - timedelta(seconds=1), catch_up_rate=5)
    owners = [lane.subscriber for lane in lanes]
    for owner in owners:
        assert owner is not None
        toggle.hold_owner(owner, actor="ann", release=over)
    with locked(lanes[0]), transaction.atomic():
        assert releases.release_due() == 1
    assert rates(lanes) == [None, 5]
    assert list(Subscriber.objects.order_by("pk").values_list("status", flat=True)) == [
        "HELD",
        "ACTIVE",
    ]
    with transaction.atomic():
        assert releases.release_due() == 1
