"""Dedup: a repetition is a duplicate, or in doubt if the first outcome is unknown."""

from datetime import timedelta

import pytest
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.mailbox import fetch
from delivery.models import Delivery, FailureNotice, JournalEntry, JournalKind, Lane, Status
from delivery.models.dedup import DedupKey
from delivery.publishing.publish import publish, publish_own
from subscriptions.models import DedupMode, EventType, Mode, Subscription
from tests.support import factories
from tests.unit.delivery.publishing.repetitions import (
    by_key,
    by_path,
    keyed,
    plain,
    published,
    settle,
    status_of,
)


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type()


FATES = {
    Status.PENDING: Status.IN_DOUBT,
    Status.IN_DOUBT: Status.IN_DOUBT,
    Status.DELIVERED: Status.DUPLICATE,
    Status.REDUNDANT: Status.DUPLICATE,
    Status.REJECTED: Status.PENDING,
    Status.UNSUPPORTED: Status.PENDING,
    Status.FAILED: Status.PENDING,
    Status.EXPIRED: Status.PENDING,
    Status.CANCELLED: Status.PENDING,
}


@pytest.mark.parametrize(("first", "second"), FATES.items())
def test_the_outcome_of_the_first_decides_about_the_second(
    event_type: EventType, first: Status, second: Status
) -> None:
    by_key(event_type)
    (delivery,) = published(keyed(event_type))
    settle(delivery, first)
    (two,) = published(keyed(event_type))
    assert two.status == second
    assert (two.settled_at is None) is (second == Status.PENDING)
    # The owner of the key from now on: it decides about the third.
    assert DedupKey.objects.get().delivery_id == (
        two.pk if second == Status.PENDING else delivery.pk
    )


def test_the_first_is_new_and_the_journal_records_the_others(event_type: EventType) -> None:
    subscription = by_key(event_type)
    (delivery,) = published(keyed(event_type))
    assert delivery.status == Status.PENDING
    assert not JournalEntry.objects.filter(kind=JournalKind.DUPLICATE).exists()
    (two,) = published(keyed(event_type))
    settle(delivery, Status.DELIVERED)
    (three,) = published(keyed(event_type))
    reported = JournalEntry.objects.filter(kind=JournalKind.DUPLICATE).order_by("id")
    assert [(entry.delivery_id, entry.subscription_id) for entry in reported] == [
        (two.pk, subscription.pk),
        (three.pk, subscription.pk),
    ]
    assert [entry.text for entry in reported] == [
        (
            f"msg_{two.message_id} is IN_DOUBT: possible duplicate of delivery {delivery.pk}, "
            "which was not settled yet."
        ),
        (
            f"msg_{three.message_id} is DUPLICATE: duplicate of delivery {delivery.pk}, "
            "which was delivered."
        ),
    ]
    assert three.reason == f"duplicate of delivery {delivery.pk}, which was delivered"


def test_a_duplicate_in_doubt_is_reported_as_a_failure_and_a_settled_one_is_not(
    event_type: EventType,
) -> None:
    by_key(event_type)
    (delivery,) = published(keyed(event_type))
    (two,) = published(keyed(event_type))
    settle(delivery, Status.DELIVERED)
    published(keyed(event_type))
    assert list(FailureNotice.objects.values_list("delivery_id", "number")) == [(two.pk, 0)]


def test_an_ended_window_starts_again(event_type: EventType) -> None:
    by_key(event_type, dedup_window_seconds=3600)
    (delivery,) = published(keyed(event_type))
    settle(delivery, Status.DELIVERED)
    DedupKey.objects.update(seen_at=timezone.now() - timedelta(minutes=59))
    (two,) = published(keyed(event_type))
    DedupKey.objects.update(seen_at=timezone.now() - timedelta(minutes=61))
    (three,) = published(keyed(event_type))
    assert [two.status, three.status] == [Status.DUPLICATE, Status.PENDING]
    assert DedupKey.objects.get().seen_at > timezone.now() - timedelta(minutes=1)
    (four,) = published(keyed(event_type))
    assert four.status == Status.IN_DOUBT


def test_a_duplicate_does_not_lengthen_the_window(event_type: EventType) -> None:
    by_key(event_type)
    (delivery,) = published(keyed(event_type))
    settle(delivery, Status.DELIVERED)
    seen_at = DedupKey.objects.get().seen_at
    published(keyed(event_type))
    assert DedupKey.objects.get().seen_at == seen_at


def test_a_removed_first_message_leaves_the_next_in_doubt(event_type: EventType) -> None:
    by_key(event_type)
    published(keyed(event_type))
    Delivery.objects.all().delete()
    (two,) = published(keyed(event_type))
    assert (two.status, two.reason.partition(", ")[2]) == (
        Status.IN_DOUBT,
        "which has been removed",
    )


def test_a_message_without_a_key_is_never_a_duplicate(event_type: EventType) -> None:
    by_key(event_type)
    same = plain(event_type, b"same")
    assert [delivery.status for delivery in published(same, same)] == [Status.PENDING] * 2
    assert not DedupKey.objects.exists()


def test_a_duplicate_for_one_subscription_is_sent_to_others(event_type: EventType) -> None:
    everything, once = factories.subscription(event_type=event_type), by_key(event_type)
    also_once = by_key(event_type)
    published(keyed(event_type))
    second = {
        delivery.subscription_id: delivery.status for delivery in published(keyed(event_type))
    }
    assert second == {
        everything.pk: Status.PENDING,
        once.pk: Status.IN_DOUBT,
        also_once.pk: Status.IN_DOUBT,
    }


def test_a_publisher_that_repeats_itself_gets_its_first_answer_and_no_duplicate(
    event_type: EventType,
) -> None:
    by_key(event_type)
    publisher = factories.publisher()
    publish(publisher, [keyed(event_type)])
    publish(publisher, [keyed(event_type)])
    assert Delivery.objects.count() == 1


class TestPaths:
    @pytest.mark.parametrize("other", [b'{"id": 7.0}', b'{ "id" : 7e0, "more": 1 }'])
    def test_equal_values_are_one_message(self, event_type: EventType, other: bytes) -> None:
        by_path(event_type)
        published(plain(event_type, b'{"id": 7}'))
        assert published(plain(event_type, other))[0].status == Status.IN_DOUBT

    @pytest.mark.parametrize("other", [b'{"id": 8}', b'{"id": "7"}', b'{"id": [7]}'])
    def test_others_are_not(self, event_type: EventType, other: bytes) -> None:
        by_path(event_type)
        published(plain(event_type, b'{"id": 7}'))
        assert published(plain(event_type, other))[0].status == Status.PENDING

    @pytest.mark.parametrize("body", [b"{}", b'{"id": null}', b"no JSON at all", b"\xff\x00", b""])
    def test_a_message_without_a_value_is_never_a_duplicate(
        self, event_type: EventType, body: bytes
    ) -> None:
        by_path(event_type)
        same = plain(event_type, body)
        assert [delivery.status for delivery in published(same, same)] == [Status.PENDING] * 2

    def test_a_header_can_identify_a_message_that_is_not_json(self, event_type: EventType) -> None:
        by_path(event_type, "$$->'Header'->>'X-Order'")
        first_delivery, two, three = published(
            plain(event_type, b"\xff", x_order="1"),
            plain(event_type, b"other bytes", x_order="1"),
            plain(event_type, b"\xff", x_order="2"),
        )
        assert [first_delivery.status, two.status, three.status] == [
            Status.PENDING,
            Status.IN_DOUBT,
            Status.PENDING,
        ]

    def test_a_key_and_a_value_of_the_same_spelling_are_two(self, event_type: EventType) -> None:
        subscription = by_key(event_type)
        published(keyed(event_type, "7"))
        Subscription.objects.filter(pk=subscription.pk).update(
            dedup_mode=DedupMode.PATH, dedup_path="$$->'Body'->>'id'"
        )
        assert published(plain(event_type, b'{"id": "7"}'))[0].status == Status.PENDING


class TestDedupInBatches:
    def test_of_one_batch_the_first_item_is_new(self, event_type: EventType) -> None:
        by_path(event_type)
        bodies = [b'{"id": 2}', b'{"id": 1}', b'{"id": 2}', b'{"id": 2, "n": 3}', b'{"id": 1}']
        statuses = [
            delivery.status for delivery in published(*(plain(event_type, body) for body in bodies))
        ]
        assert statuses == [Status.PENDING] * 2 + [Status.IN_DOUBT] * 3
        assert DedupKey.objects.count() == 2

    def test_in_a_batch_after_a_delivered_message_all_are_duplicates(
        self, event_type: EventType
    ) -> None:
        by_path(event_type)
        same = plain(event_type, b'{"id": 2}')
        (delivery,) = published(same)
        settle(delivery, Status.DELIVERED)
        assert [delivery.status for delivery in published(same, same)] == [Status.DUPLICATE] * 2

    def test_in_a_batch_after_a_failed_message_the_first_is_new(
        self, event_type: EventType
    ) -> None:
        by_path(event_type)
        same = plain(event_type, b'{"id": 2}')
        (delivery,) = published(same)
        settle(delivery, Status.REJECTED)
        two, three = published(same, same)
        assert (two.status, three.status) == (Status.PENDING, Status.IN_DOUBT)
        assert three.reason.startswith(f"possible duplicate of delivery {two.pk},")
        assert DedupKey.objects.get().delivery_id == two.pk

    def test_event_types_and_subscriptions_are_compared_separately(
        self, event_type: EventType
    ) -> None:
        other = factories.event_type()
        by_path(event_type), by_path(other)
        body = b'{"id": 2}'
        drafts = [plain(event_type, body), plain(other, body), plain(event_type, body)]
        assert [delivery.status for delivery in published(*drafts)] == [
            Status.PENDING,
            Status.PENDING,
            Status.IN_DOUBT,
        ]


def test_messages_that_inturn_publishes_are_deduplicated_too(event_type: EventType) -> None:
    by_path(event_type)
    for _ in range(2):
        publish_own([plain(event_type, b'{"id": 1}')])
    assert list(Delivery.objects.order_by("id").values_list("status", flat=True)) == [
        "PENDING",
        "IN_DOUBT",
    ]


def test_a_person_may_cancel_the_first_and_the_next_is_new(event_type: EventType) -> None:
    by_key(event_type)
    (delivery,) = published(keyed(event_type))
    assert transitions.cancel_deliveries([delivery.pk], actor="ann") == 1
    assert published(keyed(event_type))[0].status == Status.PENDING


def test_no_sender_sees_a_duplicate(event_type: EventType) -> None:
    """Its lane has work for a moment, but only within the transaction."""
    subscription = by_key(event_type)
    (delivery,) = published(keyed(event_type))
    published(keyed(event_type))
    waiting = Delivery.objects.pending().filter(
        lane=Lane.objects.get(subscriber=subscription.subscriber)
    )
    assert [row.pk for row in waiting] == [delivery.pk]


def test_a_mailbox_gets_no_duplicate_either(event_type: EventType) -> None:
    subscription = by_key(event_type, mode=Mode.PULL)
    (first,), (second,) = published(keyed(event_type)), published(keyed(event_type))
    assert (status_of(first), status_of(second)) == ("PENDING", "IN_DOUBT")
    settle(first, Status.DELIVERED)
    (third,) = published(keyed(event_type))
    assert (status_of(third), third.subscription) == ("DUPLICATE", subscription)
    (fetched,) = published(keyed(event_type, "other"))
    assert [
        message.delivery_id
        for message in fetch.fetch_messages(subscription.subscriber_id, most=9, visibility=30)
    ] == [fetched.pk]
