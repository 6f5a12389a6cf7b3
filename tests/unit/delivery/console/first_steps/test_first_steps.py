"""The card of the first steps: shown until the first delivery; its button creates an example."""

from dataclasses import replace

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from pytest_django.fixtures import Settings

from delivery.console.first_steps.card import DISMISSED_COOKIE
from delivery.models import BuiltInReceiver, TrafficMark
from delivery.receivers import example
from delivery.receivers.stored_requests import url_of
from delivery.states import Status
from subscriptions.models import (
    ConfigurationChange,
    EventType,
    Publisher,
    SigningSecret,
    Subscriber,
    Subscription,
)
from tests.support import factories
from tests.unit.delivery.console.refreshing import refresh

OVERVIEW = "/admin/"
CREATE, DISMISS = "/admin/first-steps/", "/admin/first-steps/dismiss/"
BUTTON = "Create all three for"
CREATED = (EventType, Publisher, Subscriber, Subscription, BuiltInReceiver, SigningSecret)


@pytest.fixture(autouse=True)
def _policy(db: None) -> None:
    factories.policy(example.POLICY)


def is_shown(client: Client) -> bool:
    shown = "first-steps-title" in client.get(OVERVIEW).text
    # The replacement of the card when the page is refreshed.
    assert ('id="first-steps"' in refresh(client, OVERVIEW, "overview-now").text) is not shown
    return shown


def counts() -> list[int]:
    return [model._default_manager.count() for model in CREATED]


def test_it_is_shown_until_a_delivery_is_delivered(ann: Client) -> None:
    assert is_shown(ann)
    factories.delivery(Status.REJECTED)
    factories.delivery()
    assert is_shown(ann)
    factories.delivery(Status.DELIVERED)
    assert not is_shown(ann)


def test_a_delivery_that_retention_removed_counts(ann: Client) -> None:
    TrafficMark.objects.update_or_create(
        pk=1, defaults={"until": "2026-01-01T00:00:00Z", "delivered": 1}
    )
    assert not is_shown(ann)


def test_it_can_be_dismissed(ann: Client) -> None:
    assert ann.post(DISMISS).status_code == 302
    assert ann.cookies[DISMISSED_COOKIE]["httponly"]
    assert not is_shown(ann)


def test_all_is_created_and_its_page_publishes(ann: Client) -> None:
    before = counts()
    answer = ann.post(CREATE)
    assert [now - then for now, then in zip(counts(), before, strict=True)] == [1] * len(CREATED)
    event_type = EventType.objects.get(name="Example.Greeting")
    page = f"/admin/subscriptions/eventtype/{event_type.pk}/publish/"
    assert answer.headers["Location"] == page
    assert "&quot;text&quot;: &quot;Hello, world&quot;" in ann.get(page).text
    row = Subscription.objects.get()
    assert (row.endpoint, row.event_type) == (url_of(BuiltInReceiver.objects.get()), event_type)
    publisher = Publisher.objects.get()
    assert publisher.may_publish(event_type)
    assert not publisher.may_publish(factories.event_type())
    changes = ConfigurationChange.objects.values_list("actor", "action", "object_type")
    assert sorted(changes) == [
        ("ann", "created", kind)
        for kind in (
            "built-in receiver",
            "event type",
            "publisher",
            "subscriber",
            "subscription",
        )
    ]
    assert BUTTON not in ann.get(OVERVIEW).text
    assert page in ann.get(OVERVIEW).text


def test_a_second_time_changes_nothing(ann: Client) -> None:
    ann.post(CREATE)
    before = counts(), ConfigurationChange.objects.count()
    ann.post(CREATE)
    assert (counts(), ConfigurationChange.objects.count()) == before


def test_what_exists_stays_as_it_is(ann: Client) -> None:
    factories.event_type(example.EVENT_TYPE, sample={"mine": 1})
    subscriber = factories.subscriber(example.SUBSCRIBER)
    factories.subscription(
        example.SUBSCRIPTION, subscriber=subscriber, endpoint="https://mine.example/hook"
    )
    ann.post(CREATE)
    assert EventType.objects.get(name=example.EVENT_TYPE).sample == {"mine": 1}
    assert Subscription.objects.get().endpoint == "https://mine.example/hook"


def test_all_or_nothing_is_created(ann: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example, "POLICY", "gone")
    ann.raise_request_exception = False
    before = counts()
    assert ann.post(CREATE).status_code == 500
    assert counts() == before


def test_after_a_move_its_subscription_gets_the_new_url(ann: Client, settings: Settings) -> None:
    ann.post(CREATE)
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, base_url="http://127.0.0.1:8123")
    ann.post(CREATE)
    assert Subscription.objects.get().endpoint.startswith("http://127.0.0.1:8123/receiver/")
    assert ConfigurationChange.objects.filter(action="changed").count() == 1


@pytest.mark.parametrize(
    "missing",
    ["add_eventtype", "add_publisher", "add_subscriber", "add_subscription", "add_builtinreceiver"],
)
def test_each_right_is_needed(missing: str) -> None:
    user = User.objects.create_user("pat", is_staff=True)
    user.user_permissions.set(Permission.objects.exclude(codename=missing))
    client = Client()
    client.force_login(user)
    page = client.get(OVERVIEW).text
    assert "Ask an administrator" in page
    assert BUTTON not in page
    before = counts()
    assert client.post(CREATE).status_code == 403
    assert counts() == before


def test_who_may_not_publish_sees_no_card() -> None:
    user = User.objects.create_user("audrey", is_staff=True)
    user.groups.add(Group.objects.get(name="Auditors"))
    client = Client()
    client.force_login(user)
    assert not is_shown(client)
    assert client.post(CREATE).status_code == 403


def test_the_receiver_is_below_the_base_url() -> None:
    row = BuiltInReceiver.objects.create(name="example")
    assert url_of(row).startswith(settings.ENVIRONMENT.base_url)
