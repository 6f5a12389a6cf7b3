"""A delivery's time and place at publishing: mailboxes, time to live, VOLATILE."""

import dataclasses
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from delivery.database.connections import MAILBOX_CHANNEL, connection_parameters
from delivery.models import Delivery
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import Durability, EventType, MatchMode, Mode
from tests.support import factories

DAY = 86_400


def delivered(event_type: EventType, *, copies: int = 1) -> list[Delivery]:
    drafts = [Draft(event_type=event_type, headers={}, body=b"{}")] * copies
    publish(factories.publisher(), drafts)
    return list(Delivery.objects.order_by("id").select_related("message"))


def seconds_to_live(delivery: Delivery) -> float | None:
    if delivery.expires_at is None:
        return None
    return (delivery.expires_at - delivery.message.published_at) / timedelta(seconds=1)


def test_a_pull_subscription_gets_a_message_into_its_mailbox(db: None) -> None:
    event_type = factories.event_type()
    pushed = factories.subscription(event_type=event_type)
    pulled = factories.subscription(
        event_type=event_type, subscriber=pushed.subscriber, mode=Mode.PULL
    )
    lanes = {delivery.subscription_id: delivery.lane_id for delivery in delivered(event_type)}
    assert lanes == {pushed.pk: pushed.subscriber.lane.pk, pulled.pk: None}


def test_web_servers_are_notified_of_the_mailbox(transactional_db: None) -> None:
    pulled = factories.subscription(mode=Mode.PULL)
    with psycopg.connect(**connection_parameters(), autocommit=True) as listening:
        listening.execute(f"LISTEN {MAILBOX_CHANNEL}")
        delivered(pulled.event_type)
        reported = next(listening.notifies(timeout=20))
    assert reported.payload == str(pulled.subscriber_id)


@pytest.mark.parametrize(
    ("mode", "ttl", "lives"),
    [
        (Mode.PUSH, None, None),
        (Mode.PUSH, 60, 60),
        (Mode.PUSH, 40 * DAY, 40 * DAY),
        (Mode.PULL, None, 2 * DAY),
        (Mode.PULL, 60, 60),
        (Mode.PULL, 40 * DAY, 2 * DAY),
    ],
)
def test_a_delivery_expires_by_its_ttl_and_in_a_mailbox_after_some_days_at_the_latest(
    db: None, settings: Any, mode: Mode, ttl: int | None, lives: float | None
) -> None:
    settings.ENVIRONMENT = dataclasses.replace(settings.ENVIRONMENT, mailbox_days=2)
    event_type = factories.event_type(ttl_seconds=ttl)
    factories.subscription(event_type=event_type, mode=mode)
    (delivery,) = delivered(event_type)
    # The message was written by the statement whose time is the beginning of the TTL.
    assert seconds_to_live(delivery) == (None if lives is None else pytest.approx(lives, abs=1))


def test_volatile_messages_are_not_waited_for_and_belong_to_the_server_that_runs(
    transactional_db: None,
) -> None:
    event_type = factories.event_type(durability=Durability.VOLATILE)
    factories.subscription(event_type=event_type)
    with CaptureQueriesContext(connection) as executed:
        (delivery,) = delivered(event_type)
    assert "SET LOCAL synchronous_commit = off" in [query["sql"] for query in executed]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time(), current_setting('synchronous_commit')")
        assert cursor.fetchone() == (delivery.server_started_at, "on")


def test_a_guaranteed_message_waits_for_the_disk_together_with_a_volatile_one(
    transactional_db: None,
) -> None:
    volatile, guaranteed = (
        factories.event_type(durability=Durability.VOLATILE),
        factories.event_type(),
    )
    for event_type in (volatile, guaranteed):
        factories.subscription(event_type=event_type)
    drafts = [
        Draft(event_type=event_type, headers={}, body=b"{}")
        for event_type in (volatile, guaranteed)
    ]
    with CaptureQueriesContext(connection) as executed:
        publish(factories.publisher(), drafts)
    assert not any("synchronous_commit" in query["sql"] for query in executed)
    started = Delivery.objects.order_by("id").values_list("server_started_at", flat=True)
    assert [at is not None for at in started] == [True, False]


@pytest.mark.parametrize(
    ("mode", "wanted"), [(MatchMode.ALL, ["a", "b", "c"]), (MatchMode.FIRST, ["b"])]
)
def test_equal_subscriptions_all_get_a_message_or_the_first_by_position(
    db: None, mode: MatchMode, wanted: list[str]
) -> None:
    event_type = factories.event_type()
    subscriber = factories.subscriber(match_mode=mode)
    fitting = {"subscriber": subscriber, "event_type": event_type}
    factories.subscription("no", **fitting, position=0, header_filter_string="else")
    factories.subscription("a", **fitting, position=3)
    factories.subscription("b", **fitting, position=1, mode=Mode.PULL)
    factories.subscription("c", **fitting, position=2)
    names = {delivery.subscription.name for delivery in delivered(event_type)}
    assert sorted(names) == wanted
