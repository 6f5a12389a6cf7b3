"""Publishers with the same keys at the same moment: one message is new, in any order of arrival."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from delivery.models import Delivery
from delivery.models.dedup import DedupKey
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.publishing.stored_messages import Accepted
from subscriptions.models import DedupMode, Publisher
from tests.support import factories


@pytest.mark.django_db(transaction=True)
def test_of_many_simultaneous_messages_with_one_key_one_is_new() -> None:
    event_type = factories.event_type()
    by_path = {"dedup_mode": DedupMode.PATH, "dedup_path": "$$->'Body'->'id'"}
    subscriptions = [
        factories.subscription(event_type=event_type, dedup_mode=DedupMode.KEY),
        factories.subscription(event_type=event_type, **by_path),
    ]
    publishers = [factories.publisher() for _ in range(8)]
    together = threading.Barrier(len(publishers))

    def attempt(publisher: Publisher) -> Accepted:
        together.wait()
        try:
            # Two keys in alternating order: no two publishers may wait for each other.
            bodies = [b'{"id": 1}', b'{"id": 2}'][:: 1 if publisher.pk % 2 else -1]
            drafts = [
                Draft(
                    event_type=event_type,
                    headers={"idempotency-key": key},
                    body=body,
                    idempotency_key=key,
                )
                for key, body in zip(("a", "b"), bodies, strict=True)
            ]
            return publish(publisher, drafts)[0]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(publishers)) as threads:
        list(threads.map(attempt, publishers))
    for subscription in subscriptions:
        statuses = list(
            Delivery.objects.filter(subscription=subscription).values_list("status", flat=True)
        )
        assert sorted(statuses) == ["IN_DOUBT"] * 14 + ["PENDING"] * 2
    assert DedupKey.objects.count() == 4
