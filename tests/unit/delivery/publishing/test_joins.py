"""Joins: ALL sends one message of each together, ONLY ONE the first; nothing is lost."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from delivery.lifecycle import transitions
from delivery.maintenance.expiry import settle_overdue
from delivery.models import Delivery, FailureNotice, JoinKey, JournalEntry, Status
from delivery.models.message import parse_public_id
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from delivery.support import resubmit
from subscriptions.filters import document
from subscriptions.matching.explanations import explain_matches
from subscriptions.models import (
    DedupMode,
    JoinMode,
    MatchMode,
    Mode,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Subscriber:
    return factories.subscriber("owner", match_mode=MatchMode.FIRST)


def joining(
    owner: Subscriber, name: str, how: JoinMode = JoinMode.ALL, **fields: Any
) -> Subscription:
    given = {
        "join_mode": how,
        "join_name": "order",
        "event_type": factories.event_type(name),
    } | fields
    return factories.subscription(name, subscriber=owner, **given)


def send(
    to: Subscription, activation: str | None = "A1", body: bytes = b'{"n": 1.50}', **headers: Any
) -> Delivery:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if activation is not None:
        sent["activation"] = activation
    content_type = "text/plain" if body == b"\xff" else "application/json"
    draft = Draft(event_type=to.event_type, headers=sent, body=body, content_type=content_type)
    (accepted,) = publish(factories.publisher(), [draft])
    return Delivery.objects.get(message=accepted.message_id, subscription=to)


def joined(to: Subscription) -> list[Delivery]:
    found = Delivery.objects.filter(subscription=to, lane__isnull=False).select_related("message")
    return list(found.order_by("id"))


def statuses() -> list[str]:
    return list(Delivery.objects.order_by("id").values_list("status", flat=True))


class TestAll:
    def test_the_last_message_completes_the_join(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B", position=1)
        half = send(second, body=b"\xff", x_a="1")
        assert (half.status, half.lane_id) == (Status.PENDING, None)
        assert half.reason == "waits for the other messages of the join order"
        assert joined(first) == []
        other = send(first)
        (whole,) = joined(first)
        assert whole.lane == owner.lane
        content = json.loads(bytes(whole.message.body))
        assert b'{"n": 1.50}' in bytes(whole.message.body)
        assert (content["join"], content["activation"]) == ("order", "A1")
        assert [
            (message["event"], parse_public_id(message["id"])) for message in content["messages"]
        ] == [
            ("a.A", other.message_id),
            ("b.B", half.message_id),
        ]
        assert content["messages"][1]["body_base64"] == "/w=="
        assert content["messages"][1]["headers"] == {"x-a": "1", "activation": "A1"}
        parts = Delivery.objects.filter(pk__in=[half.pk, other.pk])
        assert {row.status for row in parts} == {Status.REDUNDANT}
        assert f"is part of {whole.message.public_id}" in parts[0].reason
        assert JoinKey.objects.get().parts == []

    def test_another_activation_id_waits_for_its_own(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        send(first)
        send(second, "A2")
        send(first, None)
        send(second, None)
        assert statuses() == ["PENDING"] * 4
        assert joined(first) == []

    def test_a_shadow_subscription_is_none_of_the_join(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        tried = joining(owner, "c.C", status=SubscriptionStatus.SHADOW)
        send(first)
        assert send(tried).status == Status.SHADOW
        send(second)
        (whole,) = joined(first)
        assert len(json.loads(bytes(whole.message.body))["messages"]) == 2

    def test_a_joined_message_waits_while_its_first_subscription_is_held(
        self, owner: Subscriber
    ) -> None:
        held, other = joining(owner, "a.A", status=SubscriptionStatus.HELD), joining(owner, "b.B")
        send(other)
        send(held)
        (whole,) = joined(held)
        assert whole.status == Status.PENDING
        assert joined(other) == []

    def test_each_half_is_used_once_and_the_oldest_first(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        first_delivery, second_delivery = send(first), send(first)
        send(second)
        (whole,) = joined(first)
        second_delivery.refresh_from_db()
        assert (second_delivery.status, second_delivery.lane_id) == (Status.PENDING, None)
        assert (
            json.loads(bytes(whole.message.body))["messages"][0]["id"]
            == first_delivery.message.public_id
        )
        send(second)
        assert len(joined(first)) == 2

    def test_both_halves_in_one_batch_are_joined(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        drafts = [
            Draft(event_type=of.event_type, headers={"activation": id}, body=b"{}")
            for of in (second, first)
            for id in ("A1", "A2")
        ]
        publish(factories.publisher(), drafts)
        assert len(joined(first)) == 2

    def test_a_path_finds_the_activation_id_in_the_body(self, owner: Subscriber) -> None:
        first = joining(owner, "a.A", join_path="$$->'Body'->>'order'")
        second = joining(owner, "b.B")
        send(first, None, b'{"order": "7"}')
        send(second, "7")
        assert len(joined(first)) == 1

    def test_other_joins_subscribers_and_modes_are_apart(self, owner: Subscriber) -> None:
        first = joining(owner, "a.A")
        joining(owner, "b.B")
        send(joining(owner, "c.C", join_name="other"))
        send(joining(factories.subscriber(), "d.D"))
        send(joining(owner, "e.E", JoinMode.ONLY_ONE))
        send(first)
        assert joined(first) == []

    def test_an_inactive_part_is_still_waited_for(self, owner: Subscriber) -> None:
        first = joining(owner, "a.A")
        joining(owner, "b.B", status="INACTIVE")
        send(first)
        assert joined(first) == []

    def test_a_duplicate_is_no_part(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A", dedup_mode=DedupMode.KEY), joining(owner, "b.B")
        send(first, idempotency_key="k")
        assert send(first, idempotency_key="k").status == Status.IN_DOUBT
        send(second)
        assert send(second).status == Status.PENDING

    def test_a_part_that_waited_too_long_is_expired_reported_and_can_be_sent(
        self, owner: Subscriber
    ) -> None:
        first, second = joining(owner, "a.A", join_seconds=60), joining(owner, "b.B")
        half = send(first)
        overdue(half)
        assert settle_overdue(limit=10) == 1
        half.refresh_from_db()
        assert half.status == Status.EXPIRED
        assert half.reason.startswith("the other messages of its join did not come within")
        assert FailureNotice.objects.filter(delivery_id=half.pk).exists()
        assert JournalEntry.objects.get(kind="EXPIRED").subscription_id == first.pk
        late = send(second)
        assert (late.status, late.lane_id) == (Status.PENDING, None)
        resubmit.resubmit_delivery(half.pk, actor="ann")
        half.refresh_from_db()
        assert (half.status, half.lane) == (Status.PENDING, owner.lane)

    def test_an_expired_part_is_none_before_the_duty_settles_it(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        overdue(send(first))
        assert send(second).status == Status.PENDING

    def test_a_cancelled_part_is_none(self, owner: Subscriber) -> None:
        first, second = joining(owner, "a.A"), joining(owner, "b.B")
        transitions.cancel_deliveries([send(first).pk], actor="ann")
        assert send(second).status == Status.PENDING
        send(first)
        assert len(joined(first)) == 1


class TestOnlyOne:
    def test_the_first_is_sent_and_the_others_are_redundant(self, owner: Subscriber) -> None:
        first, second = (joining(owner, name, JoinMode.ONLY_ONE) for name in ("a.A", "b.B"))
        sent, left = send(second), send(first)
        assert (sent.status, sent.lane) == (Status.PENDING, owner.lane)
        assert left.status == Status.REDUNDANT
        assert left.reason == f"delivery {sent.pk} was the first of the join order"
        assert send(second).status == Status.REDUNDANT
        assert send(second, "A2").status == Status.PENDING
        assert send(second, None).status == Status.PENDING

    def test_after_its_time_another_is_the_first(self, owner: Subscriber) -> None:
        of = joining(owner, "a.A", JoinMode.ONLY_ONE)
        send(of)
        JoinKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert send(of).status == Status.PENDING
        assert send(of).status == Status.REDUNDANT

    def test_a_mailbox_may_have_it(self, owner: Subscriber) -> None:
        of = joining(owner, "a.A", JoinMode.ONLY_ONE, mode=Mode.PULL)
        assert [send(of).status, send(of).status] == [Status.PENDING, Status.REDUNDANT]


def test_explain_names_the_join(owner: Subscriber) -> None:
    first = joining(owner, "a.A")
    (found,) = explain_matches(first.event_type, document({}, b"{}"))
    assert (
        found.reason == "it matches, and is sent together with the other messages of its join order"
    )


def overdue(row: Delivery) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE delivery_waiting SET expires_at = now() - interval '1 second' WHERE id = %s",
            [row.pk],
        )
