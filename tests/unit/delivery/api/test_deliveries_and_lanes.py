"""Deliveries and lanes are readable, and support may unblock."""

from datetime import UTC, datetime

import pytest
from pytest_django import DjangoAssertNumQueries

from delivery.models import Delivery, Lane
from delivery.states import LaneState, Status
from subscriptions.models import Scope, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, fields_of, refused

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_deliveries_are_filtered_by_every_parameter(manager: Caller) -> None:
    subscription = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    message = factories.message(event_type=subscription.event_type, published_at=NOON)
    wanted = factories.delivery(Status.REJECTED, subscription=subscription, message=message)
    factories.delivery()
    for query in [
        "status=REJECTED",
        "subscriber=crm",
        f"subscription={subscription.pk}",
        "subscription=orders",
        "subscription=crm/orders",
        f"message={message.public_id}",
        "until=2026-05-04T13:00:00Z",
    ]:
        assert [row["id"] for row in manager.get(f"deliveries?{query}").body["results"]] == [
            wanted.pk
        ], query
    assert manager.get("deliveries?status=FAILED").body["results"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [("status=x", "status"), ("message=x", "message"), ("since=x", "since"), ("lane=x", "lane")],
)
def test_a_wrong_selection_is_refused(manager: Caller, query: str, field: str) -> None:
    assert fields_of(refused(manager.get(f"deliveries?{query}"), 400)) == {field}


def test_an_unknown_subscription_is_reported_with_the_nearest(manager: Caller) -> None:
    row = factories.delivery(
        subscription=factories.subscription("orders", subscriber=factories.subscriber("crm"))
    )
    reported = "There is no subscription 'crm/order'. Did you mean crm/orders?"
    refusal = refused(manager.get("deliveries?subscription=crm/order"), 400)
    assert [error["detail"] for error in refusal["errors"]] == [reported]
    fields = {"filter": {"subscription": "crm/order"}, "dry_run": True}
    refusal = refused(manager.post("cancellations", fields), 400)
    assert [error["detail"] for error in refusal["errors"]] == [reported]
    fields = {"filter": {"subscription": "crm/orders"}, "dry_run": True}
    assert manager.post("cancellations", fields).body["sample"] == [row.pk]


def test_a_page_of_deliveries_needs_one_query_and_the_keys(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(4):
        factories.delivery()
    manager.get("deliveries")
    with django_assert_num_queries(2):
        assert len(manager.get("deliveries").body["results"]) == 4


def test_a_delivery_is_read_with_its_attempts(manager: Caller) -> None:
    delivery = factories.delivery(Status.REJECTED)
    body = manager.get(f"deliveries/{delivery.pk}").body
    assert body["attempt_count"] == 1
    assert body["attempts"][0]["status_code"] == 404
    assert body["message"] == delivery.message.public_id
    assert body["settled_at"].endswith("Z")


def test_only_the_newest_attempts_of_a_long_tried_delivery_are_read(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    delivery = factories.delivery(attempts=230)
    for number in range(1, 231):
        factories.attempt(delivery, number=number)
    manager.get("deliveries")
    # The key, the delivery, its attempts.
    with django_assert_num_queries(3):
        body = manager.get(f"deliveries/{delivery.pk}").body
    assert body["attempt_count"] == 230
    assert [attempt["number"] for attempt in body["attempts"]] == list(range(31, 231))


def test_a_delivery_of_an_inactive_subscription_is_held(manager: Caller) -> None:
    delivery = factories.delivery(
        subscription=factories.subscription(status=SubscriptionStatus.INACTIVE)
    )
    assert manager.get(f"deliveries/{delivery.pk}").body["held"] is True
    assert manager.get("deliveries").body["results"][0]["held"] is True


def test_a_delivery_in_the_retry_lane_shows_it_and_its_remaining_attempts(manager: Caller) -> None:
    policy = factories.policy("workfront-2017")
    retried = factories.delivery(
        subscription=factories.subscription(policy=policy),
        lane=Lane.objects.get(kind="RETRY"),
        attempts=15,
        attempts_before=13,
        next_attempt_at=NOON,
    )
    for body in (
        manager.get(f"deliveries/{retried.pk}").body,
        manager.get("deliveries").body["results"][0],
        manager.get(f"messages/{retried.message.public_id}").body["deliveries"][0],
    ):
        assert (body["lane"], body["next_attempt_at"]) == ("retry:0", "2026-05-04T12:00:00Z")
        assert (body["attempt_count"], body["attempts_before"], body["max_attempts"]) == (
            15,
            13,
            13,
        )


def test_a_delivery_is_in_its_subscribers_lane_or_in_none(manager: Caller) -> None:
    waiting = factories.delivery()
    answered = factories.delivery(Status.DELIVERED, lane=None)
    lanes = {row["id"]: row["lane"] for row in manager.get("deliveries").body["results"]}
    assert lanes == {waiting.pk: waiting.subscription.subscriber.name, answered.pk: None}


def test_a_pending_delivery_is_cancelled_once(manager: Caller) -> None:
    delivery = factories.delivery()
    answer = manager.post(f"deliveries/{delivery.pk}/cancel")
    assert answer.status == 200, answer
    assert answer.body["status"] == "CANCELLED"
    refused(manager.post(f"deliveries/{delivery.pk}/cancel"), 409, "not-pending")
    refused(manager.post("deliveries/1234567/cancel"), 404)
    refused(manager.post(f"deliveries/{delivery.pk}/cancel", {"why": "x"}), 400)


def blocked_lane() -> tuple[Lane, Delivery]:
    delivery = factories.delivery()
    factories.delivery(subscription=delivery.subscription)
    lane = delivery.subscription.subscriber.lane
    lane.state = LaneState.BLOCKED
    lane.reason = "unreachable"
    lane.delivery_id = delivery.pk
    lane.next_try_at = NOON
    lane.save()
    return lane, delivery


def test_a_lane_shows_why_it_is_stopped(manager: Caller) -> None:
    lane, delivery = blocked_lane()
    held = factories.subscription(subscriber=lane.subscriber, status=SubscriptionStatus.INACTIVE)
    factories.delivery(subscription=held)
    body = manager.get(f"lanes/{lane}").body
    assert body.pop("since").endswith("Z")
    assert body == {
        "name": str(lane),
        "state": "BLOCKED",
        "reason": "unreachable",
        "delivery": delivery.pk,
        "waiting": 2,
        "next_try_at": "2026-05-04T12:00:00Z",
        "catch_up_rate": None,
    }


def test_lanes_are_listed_by_state_at_a_fixed_cost(
    manager: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    lane, _ = blocked_lane()
    for _ in range(3):
        factories.delivery()
    assert [row["name"] for row in manager.get("lanes?state=BLOCKED").body["results"]] == [
        str(lane)
    ]
    with django_assert_num_queries(3):
        names = [row["name"] for row in manager.get("lanes").body["results"]]
    assert [name for name in names if name.startswith("queue:")] == [f"queue:{n}" for n in range(5)]
    assert {"retry:0", "callback:0"} <= set(names)
    assert len(names) == 7 + 4
    refused(manager.get("lanes?state=SLOW"), 400)


def test_waiting_deliveries_are_counted_up_to_a_limit(
    manager: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (
        "delivery.standing.waiting_counts.WAITING_LIMIT",
        "delivery.api.lanes.WAITING_LIMIT",
    ):
        monkeypatch.setattr(place, 1)
    lane, _ = blocked_lane()
    body = manager.get(f"lanes/{lane}").body
    assert (body["waiting"], body["is_at_least"]) == (1, True)
    assert "is_at_least" not in manager.get("lanes/retry:0").body


def test_a_blocked_lane_is_tried_now(manager: Caller) -> None:
    lane, _ = blocked_lane()
    before = lane.next_try_at
    assert manager.post(f"lanes/{lane}/retry").status == 200
    lane.refresh_from_db()
    assert lane.next_try_at != before


def test_the_message_that_blocks_is_skipped(manager: Caller) -> None:
    lane, delivery = blocked_lane()
    answer = manager.post(f"lanes/{lane}/skip")
    assert answer.status == 200, answer
    assert answer.body["waiting"] == 1
    delivery.refresh_from_db()
    assert delivery.status == Status.CANCELLED


@pytest.mark.parametrize("verb", ["retry", "skip"])
def test_a_lane_that_is_not_blocked_is_409(manager: Caller, verb: str) -> None:
    lane = factories.subscriber("crm").lane
    refused(manager.post(f"lanes/{lane}/{verb}"), 409, "not-blocked")
    refused(manager.post(f"lanes/none/{verb}"), 404)
    refused(caller(Scope.READ).post(f"lanes/{lane}/{verb}"), 403)
