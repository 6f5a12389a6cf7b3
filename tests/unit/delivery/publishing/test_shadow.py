"""SHADOW subscriptions: matched and recorded with the message, never sent."""

from typing import Any

import pytest
from django.db import connection

from delivery.calls.sync import exchange_message
from delivery.mailbox import fetch
from delivery.models import Delivery, JournalEntry, JournalKind, Message
from delivery.models.dedup import DedupKey
from delivery.publishing.drafts import Draft
from delivery.publishing.explain import explain_message
from delivery.publishing.publish import publish
from delivery.states import Status
from delivery.support import toggle
from delivery.support.resubmit import NotResubmittedError, resubmit_delivery
from subscriptions.models import DedupMode, EventType, Kind, MatchMode, Mode, Subscription
from tests.support import factories

pytestmark = pytest.mark.django_db
REASON = "its subscription was SHADOW: matched, and not sent"


def shadow(**fields: Any) -> Subscription:
    return factories.subscription(status="SHADOW", **fields)


def published(event_type: EventType, **headers: str) -> dict[int, Delivery]:
    """Publish a message; return its deliveries by subscription."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    draft = Draft(
        event_type=event_type,
        headers=named,
        body=b"{}",
        idempotency_key=named.get("idempotency-key", ""),
    )
    (message,) = publish(factories.publisher(), [draft])
    found = Delivery.objects.filter(message=message.message_id).order_by("id")
    assert len(found) == message.deliveries
    return {row.subscription_id: row for row in found}


@pytest.mark.parametrize("mode", [Mode.PUSH, Mode.PULL])
def test_a_match_is_settled_at_once_in_no_lane(mode: Mode) -> None:
    subscription = shadow(mode=mode, **({"endpoint": ""} if mode == Mode.PULL else {}))
    (row,) = published(subscription.event_type).values()
    assert (row.status, row.reason, row.attempts, row.lane_id) == (Status.SHADOW, REASON, 0, None)
    assert row.settled_at is not None


def test_a_message_that_does_not_match_is_not_recorded() -> None:
    subscription = shadow(filter="$$->'Body'->>'id' = '1'")
    assert published(subscription.event_type) == {}


def test_other_subscriptions_get_the_message() -> None:
    subscription = shadow()
    other = factories.subscription(event_type=subscription.event_type)
    rows = published(subscription.event_type)
    assert rows[subscription.pk].status == Status.SHADOW
    assert (rows[other.pk].status, rows[other.pk].lane_id) == (
        Status.PENDING,
        other.subscriber.lane.pk,
    )


def test_a_mailbox_has_none_of_its_messages() -> None:
    subscription = shadow(mode=Mode.PULL, endpoint="")
    published(subscription.event_type)
    assert fetch.fetch_messages(subscription.subscriber_id, most=10, visibility=30) == []


def test_a_queue_group_has_the_others_alone() -> None:
    event_type = factories.event_type(kind=Kind.QUEUE)
    members = [
        shadow(event_type=event_type),
        factories.subscription(event_type=event_type, filter="$$->'Body'->>'x' is null"),
        factories.subscription(event_type=event_type),
    ]
    rows = published(event_type)
    assert [(rows[member.pk].status, rows[member.pk].queue_group) for member in members] == [
        (Status.SHADOW, None),
        (Status.PENDING, 0),
        (Status.PENDING, 1),
    ]


def test_a_sync_message_calls_another_and_records_nothing() -> None:
    event_type = factories.event_type(kind=Kind.SYNC)
    subscription = shadow(event_type=event_type)
    ended = exchange_message(
        factories.publisher(), Draft(event_type=event_type, headers={}, body=b"{}")
    )
    assert (ended.subscription, Delivery.objects.count()) == (None, 0)
    message = factories.message(event_type=event_type)
    (explanation,) = explain_message(message)
    assert (explanation.subscription, explanation.qualifies) == (subscription, False)
    assert explanation.reason == "it is SHADOW, and a SYNC message calls only ACTIVE ones"


def test_a_first_subscriber_is_served_by_the_next() -> None:
    subscription = shadow(subscriber=factories.subscriber(match_mode=MatchMode.FIRST))
    fields: dict[str, Any] = {
        "event_type": subscription.event_type,
        "subscriber": subscription.subscriber,
    }
    second = factories.subscription(**fields, position=1)
    third = shadow(**fields, position=2)
    rows = published(subscription.event_type)
    assert {id: row.status for id, row in rows.items()} == {
        subscription.pk: Status.SHADOW,
        second.pk: Status.PENDING,
    }
    message = Delivery.objects.filter(subscription=second).get().message
    reasons = {
        explanation.subscription.pk: explanation.reason for explanation in explain_message(message)
    }
    assert (
        reasons[subscription.pk]
        == "it matches, and is SHADOW: its delivery is recorded and not sent"
    )
    assert "match mode is FIRST" in str(reasons[third.pk])


def test_a_first_subscriber_that_is_all_shadow_records_the_first_alone() -> None:
    first = shadow(subscriber=factories.subscriber(match_mode=MatchMode.FIRST))
    fields: dict[str, Any] = {"event_type": first.event_type, "subscriber": first.subscriber}
    second = shadow(**fields, position=1)
    assert list(published(first.event_type)) == [first.pk]
    reasons = {
        explanation.subscription.pk: explanation.reason
        for explanation in explain_message(Message.objects.get())
    }
    assert "match mode is FIRST" in str(reasons[second.pk])


def test_its_matches_take_no_dedup_key() -> None:
    subscription = shadow(dedup_mode=DedupMode.KEY)
    for _ in range(2):
        (row,) = published(subscription.event_type, idempotency_key="k").values()
        assert row.status == Status.SHADOW
    assert DedupKey.objects.count() == 0
    toggle.activate_owner(subscription, actor="ann")
    (row,) = published(subscription.event_type, idempotency_key="k").values()
    assert row.status == Status.PENDING


def test_activated_it_sends_later_messages_alone() -> None:
    subscription = factories.subscription()
    (earlier,) = published(subscription.event_type).values()
    assert toggle.shadow_subscription(subscription, actor="ann")
    assert not toggle.shadow_subscription(subscription, actor="bob")
    (recorded,) = published(subscription.event_type).values()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM delivery_sendable WHERE id = %s", [subscription.pk])
        assert cursor.fetchone() == (0,)
    toggle.activate_owner(subscription, actor="ann")
    (later,) = published(subscription.event_type).values()
    for row in (earlier, recorded, later):
        row.refresh_from_db()
    assert [row.status for row in (earlier, recorded, later)] == [
        Status.PENDING,
        Status.SHADOW,
        Status.PENDING,
    ]
    kinds = [entry.kind for entry in JournalEntry.objects.order_by("id")]
    assert kinds == [JournalKind.SHADOW, JournalKind.ACTIVATED]


def test_a_recorded_match_is_not_resubmitted() -> None:
    (row,) = published(shadow().event_type).values()
    with pytest.raises(NotResubmittedError, match="Make its subscription ACTIVE and replay"):
        resubmit_delivery(row.pk, actor="ann")


def test_undo_restores_it() -> None:
    subscription = shadow()
    toggle.hold_owner(subscription, actor="ann")
    assert toggle.restore_status(subscription, made="HELD", to="SHADOW", actor="ann")
    assert Subscription.objects.get().status == "SHADOW"
