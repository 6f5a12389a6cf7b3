"""A filter's meaning, not its spelling, decides which subscriptions share a QUEUE group."""

import pytest
from django.db import IntegrityError

from delivery.console.event_types import queue_groups
from delivery.models import Lane
from subscriptions.matching.match import candidates, groups
from subscriptions.models import ConfigurationChange, EventType, Kind, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import caller, created

pytestmark = pytest.mark.django_db

SPELLINGS = [
    "$$->'Body'->>'p' = '1'",
    "  $$ -> 'Body' ->> 'p'='1'",
    "$$->’Body’->>’p’ = ‘1’",
]
MEANING = SPELLINGS[0]


@pytest.fixture
def queue() -> EventType:
    return factories.event_type("Baseline.Package.Create", kind=Kind.QUEUE)


def grouped(event_type: EventType) -> list[int]:
    return groups(candidates(event_type, [{"filter-string": "proj1"}]))


def test_spellings_of_one_filter_are_one_group(queue: EventType) -> None:
    for spelling in SPELLINGS:
        factories.subscription(event_type=queue, filter=spelling)
    assert grouped(queue) == [0, 0, 0]
    assert set(Subscription.objects.values_list("filter_identity", flat=True)) == {MEANING}
    assert list(Subscription.objects.order_by("id").values_list("filter", flat=True)) == SPELLINGS


def test_no_filter_another_filter_and_a_header_string_are_groups_of_their_own(
    queue: EventType,
) -> None:
    factories.subscription(event_type=queue)
    factories.subscription(event_type=queue, filter=MEANING)
    factories.subscription(event_type=queue, filter=MEANING, header_filter_string="proj1")
    factories.subscription(event_type=queue, filter=MEANING.replace("1", "2"))
    assert grouped(queue) == [0, 1, 2, 3]


def test_the_order_of_operands_is_not_normalised(queue: EventType) -> None:
    meaning, other = MEANING, "$$->'Body' ? 'q'"
    factories.subscription(event_type=queue, filter=f"{meaning} AND {other}")
    factories.subscription(event_type=queue, filter=f"{other} AND {meaning}")
    assert grouped(queue) == [0, 1]


def test_a_patch_that_only_spells_it_otherwise_changes_no_group(queue: EventType) -> None:
    manager = caller()
    subscriber = factories.subscriber()
    fields = {
        "subscriber": subscriber.name,
        "event_type": queue.name,
        "endpoint": "https://127.0.0.1/jobs",
    }
    first, second = [
        created(manager.post("subscriptions", fields | {"name": name, "filter": MEANING}))
        for name in ("a", "b")
    ]
    assert manager.patch(f"subscriptions/{first['id']}", {"filter": SPELLINGS[2]}).status == 200
    assert grouped(queue) == [0, 0]
    assert manager.patch(f"subscriptions/{second['id']}", {"filter": ""}).status == 200
    assert grouped(queue) == [0, 1]
    changed = [
        change.after
        for change in ConfigurationChange.objects.filter(action="changed").order_by("id")
    ]
    assert changed == [{"filter": SPELLINGS[2]}, {"filter": ""}]


def test_saving_the_filter_alone_saves_its_identity(queue: EventType) -> None:
    subscription = factories.subscription(event_type=queue)
    subscription.filter = SPELLINGS[1]
    subscription.save(update_fields=["filter"])
    subscription.refresh_from_db()
    assert subscription.filter_identity == MEANING


def test_a_filter_that_no_longer_parses_is_its_own_identity(queue: EventType) -> None:
    subscription = factories.subscription(event_type=queue, filter="$$ was allowed once")
    assert subscription.filter_identity == "$$ was allowed once"


def test_the_database_refuses_a_filter_without_identity(queue: EventType) -> None:
    subscription = factories.subscription(event_type=queue)
    with pytest.raises(IntegrityError, match="subscription_filter_has_identity"):
        Subscription.objects.filter(pk=subscription.pk).update(filter=MEANING)


def test_a_group_with_two_spellings_is_down_only_when_both_endpoints_are(queue: EventType) -> None:
    endpoints = [factories.subscription(event_type=queue, filter=text) for text in SPELLINGS[:2]]
    message = factories.message(event_type=queue)
    lane = Lane.objects.get(kind="QUEUE", number=0)
    first, second = [
        factories.delivery(subscription=endpoint, message=message, lane=lane, queue_group=0)
        for endpoint in endpoints
    ]
    factories.endpoint_down(first)
    assert queue_groups.groups_down(limit=10) == []
    factories.endpoint_down(second)
    (group,) = queue_groups.groups_down(limit=10)
    assert (group.condition, len(group.endpoints)) == (MEANING, 2)
