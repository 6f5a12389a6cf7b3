"""Endpoints reached at once: their rows are locked in a fixed order, without deadlocks."""

from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
from django.db import connection, connections, transaction

from delivery.database.statements import statement
from delivery.models import EndpointHealth
from tests.races.transactions import unfinished, wait_until_somebody_waits_for
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def lock(id: int) -> None:
    EndpointHealth.objects.select_for_update(nowait=True).get(pk=id)


def delete(ids: list[int]) -> None:
    rows = orjson.dumps([{"subscription_id": id} for id in ids]).decode()
    with connection.cursor() as cursor:
        cursor.execute(statement("endpoints_up"), {"rows": rows})
    connections.close_all()


@pytest.mark.parametrize("is_reversed", [False, True])
def test_rows_are_locked_in_the_order_of_subscriptions(*, is_reversed: bool) -> None:
    """The statement waits for the first row, and has locked none of the others by then."""
    deliveries = [factories.delivery() for _ in range(4)]
    # In the table they have another order.
    for delivery in reversed(deliveries):
        factories.endpoint_down(delivery)
    ids = sorted(delivery.subscription_id for delivery in deliveries)
    asked = ids[::-1] if is_reversed else ids
    with ThreadPoolExecutor(1) as thread:
        with unfinished(lambda: lock(ids[0])) as pid:
            deleting = thread.submit(delete, asked)
            wait_until_somebody_waits_for(pid)
            with transaction.atomic():
                for id in ids[1:]:
                    lock(id)
        deleting.result(30)
    assert not EndpointHealth.objects.exists()
