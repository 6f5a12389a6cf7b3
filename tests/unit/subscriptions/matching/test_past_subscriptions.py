"""Subscriptions as they were at a moment: every change in the configuration log is undone."""

from datetime import datetime
from typing import Any

import pytest
from django.db import models
from django.utils import timezone

from subscriptions import changes
from subscriptions.matching import past_subscriptions
from subscriptions.matching.explanations import subscriptions_of
from subscriptions.matching.past_subscriptions import (
    PastSubscriptions,
    TooManyChangesError,
    subscriptions_at,
)
from subscriptions.models import EventType, Subscription
from tests.support import factories

pytestmark = pytest.mark.django_db


def change(row: models.Model, **values: Any) -> None:
    """Change a row as the console and the API do."""
    before = changes.snapshot(row)
    for name, value in values.items():
        setattr(row, name, value)
    row.save()
    changes.record_change(
        actor="ann",
        action="changed",
        instance=row,
        before=before,
        after=changes.snapshot(row),
    )


def delete(row: models.Model) -> None:
    changes.record_change(
        actor="ann", action="deleted", instance=row, before=changes.snapshot(row), after=None
    )
    row.delete()


def at(moment: datetime, event_type: EventType) -> PastSubscriptions:
    return subscriptions_at(moment, event_type, list(subscriptions_of(event_type)))


@pytest.fixture
def row() -> Subscription:
    return factories.subscription("s", subscriber=factories.subscriber("abc"), filter="1 = 1")


def test_an_unchanged_one_is_as_it_is(row: Subscription) -> None:
    past = at(timezone.now(), row.event_type)
    assert [(past_row.pk, past_row.filter) for past_row in past.rows] == [(row.pk, "1 = 1")]
    assert (past.changes, past.created) == ({}, set())


def test_several_changes_are_undone_and_the_oldest_is_named(row: Subscription) -> None:
    change(row, filter="2 = 2")
    then = timezone.now()
    change(row, filter="3 = 3", position=7)
    change(row, status="INACTIVE")
    change(row, filter="4 = 4")
    past = at(then, row.event_type)
    (past_row,) = past.rows
    assert (past_row.filter, past_row.position, past_row.status) == ("2 = 2", 0, "ACTIVE")
    assert (past.changes[row.pk].after or {})["filter"] == "3 = 3"
    assert Subscription.objects.get().filter == "4 = 4"


def test_a_change_of_its_subscriber_is_one_of_its_own(row: Subscription) -> None:
    then = timezone.now()
    change(row.subscriber, status="INACTIVE", match_mode="FIRST")
    past = at(then, row.event_type)
    owner = past.rows[0].subscriber
    assert (owner.status, owner.match_mode) == ("ACTIVE", "ALL")
    assert past.changes[row.pk].object_name == "abc"


def test_changes_under_earlier_names_are_found(row: Subscription) -> None:
    then = timezone.now()
    change(row, filter="2 = 2")
    change(row, name="t")
    change(row.subscriber, name="xyz")
    row.refresh_from_db()
    change(row, name="u")
    past = at(then, row.event_type)
    assert [(str(past_row), past_row.filter) for past_row in past.rows] == [("abc/s", "1 = 1")]


def test_one_created_since_did_not_exist(row: Subscription) -> None:
    then = timezone.now()
    logged, unlogged = (factories.subscription(event_type=row.event_type) for _ in range(2))
    changes.record_change(
        actor="ann",
        action="created",
        instance=logged,
        before=None,
        after=changes.snapshot(logged),
    )
    past = at(then, row.event_type)
    assert [past_row.pk for past_row in past.rows] == [row.pk]
    assert past.created == {logged.pk, unlogged.pk}


def test_one_deleted_since_is_there_with_its_subscriber(row: Subscription) -> None:
    event_type, then = row.event_type, timezone.now()
    change(row.subscriber, match_mode="FIRST")
    change(row, filter="2 = 2")
    delete(row)
    delete(row.subscriber)
    past = at(then, event_type)
    (past_row,) = past.rows
    assert (str(past_row), past_row.filter, past_row.subscriber.match_mode) == (
        "abc/s",
        "1 = 1",
        "ALL",
    )
    assert past_row.pk < 0


def test_too_many_changes_are_not_undone(
    row: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_subscriptions, "MOST_CHANGES", 2)
    then = timezone.now()
    for number in range(3):
        change(row, position=number + 1)
    with pytest.raises(TooManyChangesError):
        at(then, row.event_type)
