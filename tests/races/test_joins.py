"""Publishers of the halves of a join at the same moment: it is completed once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from delivery.models import Delivery, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import JoinMode, Subscription
from tests.support import factories


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mode", [JoinMode.ALL, JoinMode.ONLY_ONE])
def test_of_simultaneous_halves_each_join_is_completed_once(mode: JoinMode) -> None:
    owner = factories.subscriber()
    halves = [
        factories.subscription(
            subscriber=owner, join_mode=mode, join_name="order", position=position
        )
        for position in range(2)
    ]
    publishers = [factories.publisher() for _ in range(8)]
    together = threading.Barrier(len(publishers))

    def attempt(number: int) -> None:
        half: Subscription = halves[number % 2]
        together.wait()
        try:
            # Two activation ids in alternating order: no two publishers may wait for each other.
            ids = ["A", "B"][:: 1 if number % 4 < 2 else -1]
            drafts = [
                Draft(event_type=half.event_type, headers={"activation": id}, body=b"{}")
                for id in ids
            ]
            publish(publishers[number], drafts)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(publishers)) as threads:
        list(threads.map(attempt, range(len(publishers))))
    sent = Delivery.objects.filter(status=Status.PENDING)
    redundant = Delivery.objects.filter(status=Status.REDUNDANT)
    if mode == JoinMode.ONLY_ONE:
        assert (sent.count(), redundant.count()) == (2, 14)
        return
    # Four messages of each half for each of two ids.
    assert {row.subscription_id for row in sent} == {halves[0].pk}
    assert (sent.filter(lane=owner.lane).count(), sent.count(), redundant.count()) == (8, 8, 16)
