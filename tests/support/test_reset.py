"""Rows that a test committed are gone before the next test."""

from dataclasses import replace

import pytest
from django.db import connection

from delivery.models import Message, MessageRange, Status
from subscriptions.models import Policy
from tests.support import factories, reset
from tests.unit.delivery.maintenance.ranged import range_of

pytestmark = pytest.mark.django_db(transaction=True)


def indexes_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_index WHERE indrelid = to_regclass(%s)", [table])
        ((count,),) = cursor.fetchall()
    return int(count)


def test_rows_and_changes_are_gone_and_rows_of_migrations_are_back() -> None:
    migrated = reset.remember()
    policies = list(Policy.objects.order_by("name").values())
    factories.delivery(Status.DELIVERED)
    Policy.objects.filter(name="strict").update(name="lax")
    Policy.objects.filter(name="webmethods").delete()
    reset.put_back(migrated)
    assert not Message.objects.exists()
    assert list(Policy.objects.order_by("name").values()) == policies
    # Ids are not given twice.
    assert replace(reset.remember(), next_message=migrated.next_message) == migrated


def test_ranges_of_a_test_are_dropped_and_the_first_is_made_again() -> None:
    migrated = reset.remember()
    first = MessageRange.objects.get()
    with range_of() as made:
        factories.message()
    with connection.cursor() as cursor:
        cursor.execute("SELECT delivery_drop_range(%s)", [first.pk])
    reset.put_back(migrated)
    assert MessageRange.objects.get().pk == first.pk
    assert (
        indexes_of(f"delivery_message_{made.pk}"),
        indexes_of(f"delivery_message_{first.pk}"),
    ) == (0, 6)
    message = factories.message()
    assert first.first_id <= message.pk < first.until_id
