"""The generator of large histories: indexes are restored, and a history can grow."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from delivery.models import Delivery, Message, UrlHealth
from subscriptions.models import Subscriber
from tests.support.many import bare_tables
from tests.support.many.__main__ import main

# The indexes of the stripped tables and of their partitions; PostgreSQL chooses the names of the
# latter, and rewrites conditions.
_INDEXES = """
    SELECT
        indrelid::regclass::text,
        regexp_replace(split_part(pg_get_indexdef(indexrelid), ' WHERE ', 1), 'INDEX \\S+', ''),
        indpred IS NULL, indisvalid
    FROM pg_index
    WHERE
        EXISTS (
            SELECT FROM pg_partition_ancestors(indrelid)
            WHERE relid = ANY (%(tables)s::regclass[])
        )
        OR indrelid = ANY (%(tables)s::regclass[])
"""


def indexes() -> Counter[tuple[str, str, bool, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES, {"tables": list(bare_tables.TABLES)})
        return Counter(cursor.fetchall())


@pytest.mark.django_db
def test_stripped_tables_and_their_partitions_get_all_indexes_again() -> None:
    before = indexes()
    with transaction.atomic(), connection.cursor() as cursor:
        again = bare_tables.strip()
        assert indexes() < before
        for statement in again:
            cursor.execute(statement)
    assert indexes() == before


@pytest.mark.django_db(transaction=True)
def test_a_second_step_adds_to_the_first() -> None:
    assert main(["--more", "--deliveries", "500"]) == 0
    first, subscribers, urls = (
        Delivery.objects.count(),
        Subscriber.objects.count(),
        UrlHealth.objects.count(),
    )
    assert first >= 500
    # Refused without `--more`.
    assert main(["--deliveries", "1000"]) == 1
    assert Delivery.objects.count() == first
    assert main(["--more", "--deliveries", "1000"]) == 0
    assert Delivery.objects.count() >= 1_000
    assert (Subscriber.objects.count(), UrlHealth.objects.count()) == (subscribers, urls)
    assert (
        Message.objects.filter(published_at__gt=timezone.now() - timedelta(days=15)).count()
        == Message.objects.count()
    )
    assert main(["--more", "--deliveries", "1000"]) == 0
