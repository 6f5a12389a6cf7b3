"""Publishing: stored rows, refusals, and answers to repetitions."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from delivery.models import Delivery, IdempotencyKey, JournalEntry, Message, Status
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from delivery.publishing.stored_messages import Accepted
from subscriptions.models import EventType, MatchMode, Publisher, SubscriptionStatus
from tests.support import factories


def draft(event_type: EventType, body: bytes = b'{"n": 1}', **fields: Any) -> Draft:
    fields.setdefault("headers", {"content-type": "application/json"})
    fields.setdefault("content_type", "application/json")
    return Draft(event_type=event_type, body=body, **fields)


def test_a_message_is_stored_with_a_delivery_for_each_qualifying_subscription(db: None) -> None:
    event_type = factories.event_type()
    wanted = [
        factories.subscription(event_type=event_type),
        factories.subscription(event_type=event_type, filter="$$->'Body'->>'n' = '1'"),
        factories.subscription(event_type=event_type, header_filter_string="proj1"),
    ]
    factories.subscription(event_type=event_type, filter="$$->'Body'->>'n' = '2'")
    factories.subscription(event_type=event_type, header_filter_string="proj2")
    factories.subscription(event_type=event_type, status=SubscriptionStatus.INACTIVE)
    factories.subscription()
    sent = draft(event_type, headers={"filter-string": "proj1", "priority": "low"})

    (accepted,) = publish(factories.publisher(), [sent])

    stored = Message.objects.get(pk=accepted.message_id)
    assert (bytes(stored.body), stored.headers, stored.content_type) == (
        sent.body,
        sent.headers,
        "application/json",
    )
    deliveries = Delivery.objects.filter(message=stored)
    assert accepted.deliveries == 3
    assert {row.subscription_id for row in deliveries} == {row.pk for row in wanted}
    assert {row.status for row in deliveries} == {Status.PENDING}
    assert all(row.lane_id == row.subscription.subscriber.lane.pk for row in deliveries)


def test_the_bytes_of_the_body_are_kept_exactly(db: None) -> None:
    body = b'{ "b":1,\t"a" : 1.0,\r\n"b": "\\u00e9" }  '
    (accepted,) = publish(factories.publisher(), [draft(factories.event_type(), body)])
    assert bytes(Message.objects.get(pk=accepted.message_id).body) == body


def test_a_first_subscriber_gets_only_the_first_that_qualifies_by_position(db: None) -> None:
    event_type = factories.event_type()
    first = factories.subscriber(match_mode=MatchMode.FIRST)
    factories.subscription(
        event_type=event_type, subscriber=first, position=1, filter="$$->'Body'->>'n' = '2'"
    )
    chosen = factories.subscription(event_type=event_type, subscriber=first, position=2)
    factories.subscription(event_type=event_type, subscriber=first, position=3)

    (accepted,) = publish(factories.publisher(), [draft(event_type)])

    assert [
        row.subscription_id for row in Delivery.objects.filter(message_id=accepted.message_id)
    ] == [chosen.pk]


def test_a_message_without_subscription_is_stored_with_one_journal_entry(db: None) -> None:
    (accepted,) = publish(factories.publisher(), [draft(factories.event_type())])
    assert accepted.deliveries == 0
    assert JournalEntry.objects.get().message_id == accepted.message_id


def test_a_batch_is_numbered_in_array_order(db: None) -> None:
    event_types = [factories.event_type(), factories.event_type()]
    subscriber = factories.subscriber()
    for event_type in event_types:
        factories.subscription(event_type=event_type, subscriber=subscriber)
    drafts = [draft(event_types[n % 2], b'{"n": %d}' % n) for n in range(50)]

    accepted = publish(factories.publisher(), drafts)

    ids = [answer.message_id for answer in accepted]
    assert ids == sorted(ids)
    by_lane = Delivery.objects.filter(lane=subscriber.lane).order_by("id").select_related("message")
    assert [bytes(row.message.body) for row in by_lane] == [sent.body for sent in drafts]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "line 1, column"),
        (b'{"a": NaN}', "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_an_invalid_json_body_is_refused_and_stores_nothing(
    db: None, body: bytes, words: str
) -> None:
    event_type = factories.event_type()
    with pytest.raises(PublishRefusedError, match=words) as refused:
        publish(factories.publisher(), [draft(event_type), draft(event_type, body)])
    assert (refused.value.status, refused.value.index) == (400, 1)
    assert not Message.objects.exists()


def test_another_content_type_may_hold_any_bytes(db: None) -> None:
    event_type = factories.event_type(content_type="application/octet-stream")
    factories.subscription(event_type=event_type)
    sent = draft(event_type, b"\x00\xff", content_type="application/octet-stream")
    (accepted,) = publish(factories.publisher(), [sent])
    assert accepted.deliveries == 1


def test_a_body_against_the_schema_is_refused_with_its_path(db: None) -> None:
    schema = {"properties": {"project": {"properties": {"id": {"type": "string"}}}}}
    event_type = factories.event_type(json_schema=schema)
    with pytest.raises(PublishRefusedError) as refused:
        publish(factories.publisher(), [draft(event_type, b'{"project": {"id": 7}}')])
    assert (refused.value.status, refused.value.path) == (422, "$.project.id")
    publish(factories.publisher(), [draft(event_type, b'{"project": {"id": "7"}}')])


def test_a_schema_that_refers_to_another_address_fetches_nothing(db: None) -> None:
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    event_type = factories.event_type(json_schema=schema)
    with pytest.raises(Exception, match=r"127\.0\.0\.1:9"):
        publish(factories.publisher(), [draft(event_type)])
    assert not Message.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", [None, "k"])
def test_objects_deleted_meanwhile_are_reported(key: str | None) -> None:
    event_type, publisher = factories.event_type("Gone"), factories.publisher("shop")
    drafts = [draft(factories.event_type()), draft(event_type, idempotency_key=key)]
    EventType.objects.filter(pk=event_type.pk).delete()
    with pytest.raises(
        PublishRefusedError, match="event type Gone has just been deleted"
    ) as refused:
        publish(publisher, drafts)
    assert (refused.value.status, refused.value.index) == (404, 1)
    Publisher.objects.filter(pk=publisher.pk).delete()
    with pytest.raises(
        PublishRefusedError, match="publisher shop has just been deleted"
    ) as refused:
        publish(publisher, drafts[:1])
    assert refused.value.status == 404
    assert not Message.objects.exists()


class TestIdempotency:
    @pytest.fixture
    def event_type(self, db: None) -> EventType:
        found = factories.event_type()
        factories.subscription(event_type=found)
        return found

    @pytest.fixture
    def publisher(self, db: None) -> Publisher:
        return factories.publisher()

    def test_the_same_key_gets_the_first_answer_again(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        first = publish(publisher, [draft(event_type, idempotency_key="k")])
        assert publish(publisher, [draft(event_type, idempotency_key="k")]) == first
        assert Message.objects.count() == 1

    def test_another_body_with_that_key_is_refused(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        publish(publisher, [draft(event_type, idempotency_key="k")])
        with pytest.raises(PublishRefusedError) as refused:
            publish(publisher, [draft(event_type, b"{}", idempotency_key="k")])
        assert refused.value.status == 409
        assert Message.objects.count() == 1

    def test_another_publisher_may_use_the_same_key(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        publish(publisher, [draft(event_type, idempotency_key="k")])
        publish(factories.publisher(), [draft(event_type, idempotency_key="k")])
        assert Message.objects.count() == 2

    def test_after_24_hours_the_key_is_free(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        (first,) = publish(publisher, [draft(event_type, idempotency_key="k")])
        IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
        (second,) = publish(publisher, [draft(event_type, b"{}", idempotency_key="k")])
        assert second.message_id > first.message_id

    def test_within_a_batch_a_repeated_key_is_published_once(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        keys = ["a", "b", "a"]
        first, second, third = publish(
            publisher, [draft(event_type, idempotency_key=key) for key in keys]
        )
        assert first == third != second
        assert Message.objects.count() == 2

    def test_a_batch_repeats_old_ones_and_publishes_new_ones(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        (old,) = publish(publisher, [draft(event_type, idempotency_key="a")])
        again, fresh, keyless = publish(
            publisher,
            [
                draft(event_type, idempotency_key="a"),
                draft(event_type, idempotency_key="b"),
                draft(event_type),
            ],
        )
        assert again == old
        assert len({old.message_id, fresh.message_id, keyless.message_id}) == 3

    def test_a_refused_message_releases_its_key(
        self, publisher: Publisher, event_type: EventType
    ) -> None:
        with pytest.raises(PublishRefusedError):
            publish(
                publisher,
                [
                    draft(event_type, idempotency_key="k"),
                    draft(event_type, b"{", idempotency_key="l"),
                ],
            )
        assert publish(publisher, [draft(event_type, idempotency_key="k")])


@pytest.mark.django_db(transaction=True)
def test_of_many_simultaneous_messages_with_one_key_one_is_stored_and_all_get_its_answer() -> None:
    event_type, publisher = factories.event_type(), factories.publisher()
    factories.subscription(event_type=event_type)
    together = threading.Barrier(8)

    def attempt(_: int) -> Accepted:
        together.wait()
        try:
            return publish(publisher, [draft(event_type, idempotency_key="k")])[0]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(attempt, range(8)))
    assert len(answers) == 1
    assert Message.objects.count() == 1
