"""Default destinations: they get the messages that no other subscription matches."""

from typing import Any

import pytest

from delivery.models import Delivery, JournalEntry
from delivery.publishing.drafts import Draft
from delivery.publishing.explain import explain_message
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, MatchMode, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, caller, created, fields_of, refused
from tests.unit.delivery.configuration.document.documents import document, plan

pytestmark = pytest.mark.django_db
WANTED = "$$->'Body'->>'id' = '1'"


@pytest.fixture
def event_type() -> EventType:
    return factories.event_type("Orders")


@pytest.fixture
def ordinary(event_type: EventType) -> Subscription:
    return factories.subscription("ordinary", event_type=event_type, filter=WANTED)


@pytest.fixture
def default(event_type: EventType) -> Subscription:
    return factories.subscription("default", event_type=event_type, takes_unmatched=True)


def receivers(event_type: EventType, id: str = "2", **fields: Any) -> list[str]:
    """Publish a message; return the names of the subscriptions that have a delivery."""
    body = b'{"id": "%s"}' % id.encode()
    publish(factories.publisher(), [Draft(event_type=event_type, headers={}, body=body, **fields)])
    newest = Delivery.objects.order_by("-message_id").values_list("message_id", flat=True)[:1]
    rows = Delivery.objects.filter(message_id=newest).order_by("id")
    return [row.subscription.name for row in rows]


def test_it_gets_only_messages_that_no_other_subscription_matches(
    event_type: EventType, ordinary: Subscription, default: Subscription
) -> None:
    assert receivers(event_type, "1") == ["ordinary"]
    assert receivers(event_type, "2") == ["default"]
    assert not JournalEntry.objects.exists()


def test_an_ordinary_one_without_a_filter_leaves_it_nothing(
    event_type: EventType, default: Subscription
) -> None:
    assert receivers(event_type) == ["default"]
    factories.subscription("all", event_type=event_type)
    assert receivers(event_type) == ["all"]


def test_its_own_filter_counts(event_type: EventType) -> None:
    factories.subscription("default", event_type=event_type, takes_unmatched=True, filter=WANTED)
    assert receivers(event_type, "1") == ["default"]
    publish(factories.publisher(), [Draft(event_type=event_type, headers={}, body=b"{}")])
    assert JournalEntry.objects.get().kind == "UNMATCHED"


@pytest.mark.parametrize(
    ("status", "expected"),
    [("HELD", ["ordinary"]), ("INACTIVE", ["default"]), ("SHADOW", ["ordinary", "default"])],
)
def test_an_ordinary_one_that_sends_nothing(
    event_type: EventType,
    ordinary: Subscription,
    default: Subscription,
    status: str,
    expected: list[str],
) -> None:
    Subscription.objects.filter(pk=ordinary.pk).update(status=status)
    assert receivers(event_type, "1") == expected


def test_a_shadow_one_records_what_it_would_get(
    event_type: EventType, ordinary: Subscription, default: Subscription
) -> None:
    Subscription.objects.update(status="SHADOW")
    assert (receivers(event_type, "1"), receivers(event_type, "2")) == (["ordinary"], ["default"])


def test_an_earlier_position_of_a_first_subscriber_takes_no_message_of_another(
    event_type: EventType,
) -> None:
    fields: dict[str, Any] = {
        "event_type": event_type,
        "subscriber": factories.subscriber(match_mode=MatchMode.FIRST),
    }
    factories.subscription("default", takes_unmatched=True, position=0, **fields)
    factories.subscription("ordinary", filter=WANTED, position=1, **fields)
    factories.subscription("second default", takes_unmatched=True, position=2, **fields)
    assert (receivers(event_type, "1"), receivers(event_type, "2")) == (["ordinary"], ["default"])


def test_explain_says_who_took_the_message(
    event_type: EventType, ordinary: Subscription, default: Subscription
) -> None:
    def reasons(id: str) -> dict[str, str]:
        message = factories.message(b'{"id": "%s"}' % id.encode(), event_type=event_type)
        return {
            explanation.subscription.name: str(explanation.reason)
            for explanation in explain_message(message)
        }

    assert reasons("1") == {
        "ordinary": "it matches",
        "default": f"it is a default destination, and {ordinary} matches",
    }
    assert (
        reasons("2")["default"] == "it matches as a default destination: no other subscription does"
    )


@pytest.fixture
def manager() -> Caller:
    return caller()


@pytest.mark.parametrize("kind", [Kind.QUEUE, Kind.SYNC])
def test_it_is_for_topics(manager: Caller, kind: Kind) -> None:
    subscription = factories.subscription(event_type=factories.event_type(kind=kind))
    path = f"subscriptions/{subscription.pk}"
    assert fields_of(refused(manager.patch(path, {"takes_unmatched": True}), 400)) == {
        "takes_unmatched"
    }


def test_it_is_set_by_rest_and_in_a_configuration_file(
    manager: Caller, default: Subscription
) -> None:
    given = {"subscriber": default.subscriber.name, "name": "other", "event_type": "Orders"}
    made = manager.post(
        "subscriptions", given | {"endpoint": "https://8.8.8.8/", "takes_unmatched": True}
    )
    assert created(made)["takes_unmatched"] is True
    planned = plan(document(subscriptions=[given | {"takes_unmatched": False}]))
    (change,) = planned.changes
    assert [(field.name, field.before, field.after) for field in change.fields] == [
        ("takes_unmatched", True, False)
    ]
