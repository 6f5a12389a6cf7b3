"""Bounds of the ids of messages published in an interval."""

from datetime import UTC, datetime, timedelta

import pytest

from delivery.models import Message, MessageReservation
from delivery.models.published import id_limit, lowest_id
from tests.support import factories

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def published(*minutes: int) -> list[int]:
    """Create messages so many minutes after noon, in the order of their ids."""
    return [factories.message(published_at=NOON + each * MINUTE).pk for each in minutes]


def between(since: datetime, until: datetime) -> list[int]:
    rows = Message.objects.filter(pk__gte=lowest_id(since), pk__lt=id_limit(until))
    return sorted(rows.values_list("pk", flat=True))


def test_messages_of_other_times_are_beyond_the_bounds() -> None:
    _, before, *inside, _, after = published(-60, -6, 0, 30, 59, 66, 120)
    found = between(NOON, NOON + 60 * MINUTE)
    # The bounds themselves are at a safe distance.
    assert found == [before, *inside]
    assert after not in found


def test_messages_whose_ids_are_not_in_the_order_of_time_are_within_the_bounds() -> None:
    first, *_, last = published(4, -1, 0, 60, 61, 59)
    assert {first, last} <= set(between(NOON, NOON + 60 * MINUTE))


def test_without_messages_at_other_times_nothing_is_left_out() -> None:
    made = published(0)
    assert between(NOON, NOON + MINUTE) == made


@pytest.mark.parametrize("since", [datetime(1, 1, 1, tzinfo=UTC), NOON])
@pytest.mark.parametrize("until", [datetime(9999, 12, 31, 23, 59, tzinfo=UTC), NOON + MINUTE])
def test_times_at_the_ends_of_the_calendar_have_bounds(since: datetime, until: datetime) -> None:
    made = published(0)
    assert between(since, until) == made


def test_imported_messages_whose_ids_were_reserved_long_before_are_within_the_bounds() -> None:
    first, *_ = published(-120)
    MessageReservation.objects.create(first_id=first + 1, until_id=first + 9, next_id=first + 3)
    live = [factories.message(pk=first + 10 + at, published_at=NOON + at * MINUTE) for at in (0, 9)]
    imported = [
        factories.message(pk=first + 1 + at, published_at=NOON + (30 + at) * MINUTE).pk
        for at in (0, 1)
    ]
    assert set(imported) <= set(between(NOON + 29 * MINUTE, NOON + 40 * MINUTE))
    # The first message after that time is an imported one, with a lower id.
    assert {message.pk for message in live} <= set(between(NOON - MINUTE, NOON + 20 * MINUTE))
    # A reservation that was used only before bounds nothing.
    after = [
        factories.message(pk=first + 30 + at, published_at=NOON + at * HOUR).pk for at in (1, 2)
    ]
    assert between(NOON + 2 * HOUR, NOON + 3 * HOUR) == after
