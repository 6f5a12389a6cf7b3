"""Forwarded headers of messages in the console: forms, test messages, requests as sent, curl."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from delivery.console.messages import curl
from delivery.models import Delivery, Status
from subscriptions.models import ConfigurationChange, EventType, Subscription
from tests.support import factories
from tests.support.receivers import Receiver
from tests.unit.delivery.console.configuration.test_log import ROOT
from tests.unit.delivery.console.messages.test_curl import shell
from tests.unit.delivery.console.subscription_form import form_values


@pytest.fixture
def values(db: None) -> dict[str, Any]:
    event_type = factories.event_type("GitHub.Push", forward_headers=["x-github-*"])
    return form_values(name="pushes", event_type=event_type)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("", ["x-github-*"]),
        ("*", ["*"]),
        ("Traceparent, X-Hub-*\r\nX-Hub-*", ["traceparent", "x-hub-*"]),
    ],
)
def test_a_new_subscription_takes_what_is_typed_or_what_its_event_type_says(
    ann: Client, values: dict[str, Any], typed: str, stored: list[str]
) -> None:
    page = ann.post(
        f"{ROOT}/subscription/add/", values | {"forward_headers": typed}, follow=True
    ).text
    assert Subscription.objects.get().forward_headers == stored
    assert f"crm/pushes forwards these headers of each message: {', '.join(stored)}." in page


def test_an_emptied_list_sends_none(ann: Client, values: dict[str, Any]) -> None:
    ann.post(f"{ROOT}/subscription/add/", values)
    row = Subscription.objects.get()
    address = f"{ROOT}/subscription/{row.pk}/change/"
    assert "x-github-*" in ann.get(address).text
    before = ConfigurationChange.objects.count()
    ann.post(address, values | {"forward_headers": "x-github-*"})
    assert ConfigurationChange.objects.count() == before
    ann.post(address, values | {"forward_headers": ""})
    assert Subscription.objects.get().forward_headers == []
    change = ConfigurationChange.objects.order_by("pk").last()
    assert change is not None
    assert change.after == {"forward_headers": []}


def test_an_event_type_says_what_new_subscriptions_send_along(ann: Client, db: None) -> None:
    given = {
        "name": "Made",
        "kind": "TOPIC",
        "content_type": "a/b",
        "durability": "GUARANTEED",
        "errors_when": "DELIVERY",
    }
    ann.post(f"{ROOT}/eventtype/add/", given | {"forward_headers": "X-A\nX-B-*"})
    assert EventType.objects.get(name="Made").forward_headers == ["x-a", "x-b-*"]
    assert (
        "x-b-*" in ann.get(f"{ROOT}/eventtype/{EventType.objects.get(name='Made').pk}/change/").text
    )


@pytest.fixture
def delivery(db: None, receiver: Receiver) -> Delivery:
    event_type = factories.event_type("GitHub.Push")
    row = factories.subscription(
        event_type=event_type,
        endpoint=receiver.endpoint(factories.unique("hook")).url,
        headers={"X-Own": "s3cret"},
        forward_headers=["*"],
    )
    headers = {"x-github-event": "it's a 'push'", "x-own": "theirs", "x-forwarded-for": "10.0.0.1"}
    message = factories.message(b"{}", event_type=event_type, headers=headers)
    return factories.delivery(Status.REJECTED, message=message, subscription=row)


def test_the_page_shows_them_to_those_who_may_see_payloads(ann: Client, delivery: Delivery) -> None:
    address = f"/admin/delivery/delivery/{delivery.pk}/change/"
    page = ann.get(address).text
    assert "x-github-event: it&#x27;s a &#x27;push&#x27;" in page
    assert "x-own: theirs" not in page
    assert "10.0.0.1" not in page
    user = User.objects.create_user("ray", is_staff=True)
    looks = Permission.objects.filter(codename__startswith="view_").exclude(codename="view_payload")
    user.user_permissions.set(looks)
    ann.force_login(user)
    denied = ann.get(address).text
    assert "x-github-event: •••" in denied
    assert "push&#x27;" not in denied


def test_a_copied_command_sends_them(
    delivery: Delivery, receiver: Receiver, tmp_path: Path
) -> None:
    secret = delivery.subscription.secrets.get().secret
    shell(curl.send_command(delivery), tmp_path, SECRET=secret, X_OWN="of mine")
    (got,) = receiver.endpoint(delivery.subscription.endpoint.rpartition("/")[2]).received
    assert got.headers["X-GitHub-Event"] == "it's a 'push'"
    assert got.headers["X-Own"] == "of mine"
    assert "X-Forwarded-For" not in got.headers


def test_a_test_message_sends_along_what_is_typed(
    ann: Client, delivery: Delivery, receiver: Receiver
) -> None:
    row = delivery.subscription
    address = f"/admin/subscriptions/subscription/{row.pk}/test/"
    given = {
        "content_type": "a/b",
        "body": "{}",
        "headers": "X-GitHub-Event: ping\nCookie: a=b\nX-Own: theirs",
    }
    page = ann.post(address, given).text
    (got,) = receiver.endpoint(row.endpoint.rpartition("/")[2]).received
    assert (got.headers["X-GitHub-Event"], got.headers["X-Own"]) == ("ping", "s3cret")
    assert "Cookie" not in got.headers
    assert "<code>ping</code>" in page
    assert "s3cret" not in page


def test_a_test_message_begins_with_the_names_that_are_sent_along(
    ann: Client, delivery: Delivery
) -> None:
    row = delivery.subscription
    address = f"/admin/subscriptions/subscription/{row.pk}/test/"
    Subscription.objects.update(forward_headers=["x-github-event", "x-hub-*"])
    page = ann.get(address).text
    assert "x-github-event: test" in page
    assert "The subscription forwards x-github-event, x-hub-*." in page
    said = ann.post(address, {"content_type": "a/b", "body": "{}", "headers": "no colon"}).text
    assert "Line 1 is not a header" in said
    Subscription.objects.update(forward_headers=[])
    assert "Headers of the message" not in ann.get(address).text
