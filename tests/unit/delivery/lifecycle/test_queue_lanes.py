"""The queue lane of a message, and its groups."""

from dataclasses import replace

import pytest
from django.db import IntegrityError
from django.utils import timezone
from pytest_django import Settings

from delivery.lifecycle import queue_lanes
from delivery.models import Delivery, Lane, LaneKind, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, MatchMode
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def event_type() -> EventType:
    return factories.event_type(kind=Kind.QUEUE)


def published(event_type: EventType, count: int = 1) -> list[int]:
    drafts = [Draft(event_type=event_type, headers={"filter-string": "x"}, body=b"{}")] * count
    return [accepted.message_id for accepted in publish(factories.publisher(), drafts)]


def test_messages_are_shared_out_by_their_ids(event_type: EventType) -> None:
    factories.subscription(event_type=event_type)
    published(event_type, 12)
    for delivery in Delivery.objects.select_related("lane"):
        assert delivery.lane is not None
        assert (delivery.lane.kind, delivery.lane.number) == (
            LaneKind.QUEUE,
            delivery.message_id % 5,
        )


def test_the_setting_is_the_number_of_lanes(event_type: EventType, settings: Settings) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, queue_senders=7)
    queue_lanes.ensure_queue_lanes(7)
    queue_lanes.ensure_queue_lanes(3)
    assert Lane.objects.filter(kind=LaneKind.QUEUE).count() == 7
    factories.subscription(event_type=event_type)
    (id,) = published(event_type)
    assert Delivery.objects.get().lane == Lane.objects.get(kind=LaneKind.QUEUE, number=id % 7)


def test_the_same_filter_and_header_string_make_a_group(event_type: EventType) -> None:
    subscriber = factories.subscriber(match_mode=MatchMode.FIRST)
    choices = [{}, {}, {"filter": "$$->'Body'->>'a' is null"}, {"header_filter_string": "x"}]
    # The subscriber is ignored, and so is its match mode.
    made = [
        factories.subscription(event_type=event_type, subscriber=subscriber, **choice)
        for choice in choices
    ]
    published(event_type)
    groups = {row.subscription_id: row.queue_group for row in Delivery.objects.all()}
    first, second, filtered, by_string = (groups[subscription.pk] for subscription in made)
    assert first == second
    assert len({first, filtered, by_string}) == 3


def test_the_table_refuses_a_second_delivered_of_a_group(event_type: EventType) -> None:
    factories.subscription(event_type=event_type)
    factories.subscription(event_type=event_type)
    published(event_type)
    with pytest.raises(IntegrityError, match="one_of_a_queue_group"):
        Delivery.objects.update(status=Status.DELIVERED, settled_at=timezone.now())
