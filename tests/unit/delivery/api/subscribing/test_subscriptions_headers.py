"""Headers and credentials of a subscription: checked, encrypted and masked."""

from typing import Any

import pytest

from subscriptions.models import ConfigurationChange, Subscription
from subscriptions.values.encryption import decrypt
from tests.unit.delivery.api.client import Caller, created, fields_of, refused
from tests.unit.delivery.api.subscribing.test_subscriptions import valid

MASKED = "•••"


def test_headers_and_credentials_are_encrypted_and_masked(configured: Caller) -> None:
    auth = {"type": "basic", "username": "crm", "password": "sesame"}
    made = created(configured.post("subscriptions", valid(headers={"X-Token": "open"}, auth=auth)))
    assert made["headers"] == {"X-Token": MASKED}
    assert made["auth"] == {"type": "basic", "username": "crm", "password": MASKED}
    raw = (
        Subscription.objects.extra(select={"h": "headers", "a": "auth"}).values_list("h", "a").get()
    )
    assert "open" not in raw[0]
    assert "sesame" not in raw[1]
    assert decrypt(raw[1]) == auth
    logged = str(list(ConfigurationChange.objects.values()))
    assert "open" not in logged
    assert "sesame" not in logged


def test_a_masked_value_sent_back_is_unchanged(configured: Caller) -> None:
    auth = {"type": "bearer", "token": "abc"}
    made = created(
        configured.post("subscriptions", valid(headers={"X-A": "1", "X-B": "2"}, auth=auth))
    )
    path = f"subscriptions/{made['id']}"
    answer = configured.patch(path, {"headers": {"X-A": MASKED, "X-C": "3"}, "auth": made["auth"]})
    assert answer.status == 200, answer
    row = Subscription.objects.get()
    assert row.headers == {"X-A": "1", "X-C": "3"}
    assert row.auth == auth


def test_a_mask_without_anything_behind_it_is_refused(configured: Caller) -> None:
    refused(configured.post("subscriptions", valid(headers={"X-A": MASKED})), 400)
    refused(configured.post("subscriptions", valid(auth={"type": "bearer", "token": MASKED})), 400)
    refused(
        configured.post(
            "subscriptions", valid(auth={"type": "basic", "username": "u", "password": MASKED})
        ),
        400,
    )


def test_a_new_secret_is_logged_without_its_value(configured: Caller) -> None:
    made = created(configured.post("subscriptions", valid(headers={"X-A": "1"})))
    configured.patch(f"subscriptions/{made['id']}", {"headers": {"X-A": "2"}})
    change = ConfigurationChange.objects.first()
    assert change is not None
    assert change.action == "changed"
    assert change.after == {"headers": "•••, new value"}


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "b\r\nX-Injected: c"},
        {"X-A": "b\0"},
        {"X-A\r\nB": "c"},
        {"X A": "b"},
        {"": "b"},
        {"X-A": "é"},
        {"X-A": 1},
        {"X-A": None},
        {"X-A": ["b"]},
        {"Host": "evil.example"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Webhook-Id": "x"},
        {"webhook_signature": "x"},
        {"Inturn-Event": "x"},
        {"Content-Type": "text/plain"},
        {"X-A": "b", "x-a": "c"},
        {"X-A": "x" * 5000},
        {f"X-{number}": "b" for number in range(60)},
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(configured: Caller, headers: Any) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(headers=headers)), 400)) == {
        "headers"
    }
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    "auth",
    [
        {},
        {"type": "digest"},
        {"type": ["basic"]},
        {"type": "basic"},
        {"type": "basic", "username": "a:b", "password": "c"},
        {"type": "basic", "username": "", "password": "c"},
        {"type": "basic", "username": "a\r\nb", "password": "c"},
        {"type": "basic", "username": "a", "password": 1},
        {"type": "bearer", "token": "a b"},
        {"type": "bearer", "token": "a\r\nX: y"},
        {"type": "bearer", "token": ""},
        {"type": "bearer", "token": "a", "username": "b"},
        {"type": "none", "token": "a"},
        "Bearer x",
        None,
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(configured: Caller, auth: Any) -> None:
    assert fields_of(refused(configured.post("subscriptions", valid(auth=auth)), 400)) == {"auth"}
    assert not Subscription.objects.exists()


def test_an_authorization_header_and_auth_exclude_each_other(configured: Caller) -> None:
    headers = {"Authorization": "ApiKey x"}
    made = created(configured.post("subscriptions", valid(headers=headers)))
    both = configured.patch(
        f"subscriptions/{made['id']}", {"auth": {"type": "bearer", "token": "x"}}
    )
    assert fields_of(refused(both, 400)) == {"auth"}
