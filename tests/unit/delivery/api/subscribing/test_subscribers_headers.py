"""Headers of a subscriber: encrypted, masked, referenced in documents, sent with each delivery."""

import pytest
from django.db import connection
from django.test import Client

from delivery.calls.slots import current_endpoint
from delivery.configuration.document.export import export_configuration
from delivery.console.messages.as_sent import secret_headers
from subscriptions.changes import MASKED
from subscriptions.models import ConfigurationChange, Subscriber
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created
from tests.unit.delivery.configuration.document.documents import apply, faults, plan, reported

SHARED = {"X-Key": "shared secret", "X-Team": "a"}


def test_they_are_encrypted_masked_and_kept(manager: Caller) -> None:
    made = created(manager.post("subscribers", {"name": "abc", "headers": SHARED}))
    assert made["headers"] == dict.fromkeys(SHARED, MASKED)
    with connection.cursor() as cursor:
        cursor.execute("SELECT headers FROM subscriptions_subscriber")
        assert "shared secret" not in cursor.fetchone()[0]
    changed = manager.patch("subscribers/abc", {"headers": {"X-Key": MASKED, "X-New": "1"}})
    assert changed.body["headers"] == {"X-Key": MASKED, "X-New": MASKED}
    assert Subscriber.objects.get().headers == {"X-Key": "shared secret", "X-New": "1"}
    assert "shared secret" not in str(ConfigurationChange.objects.values_list("before", "after"))


def test_without_any_the_column_is_null(manager: Caller) -> None:
    assert created(manager.post("subscribers", {"name": "abc"}))["headers"] == {}
    manager.patch("subscribers/abc", {"headers": SHARED})
    assert manager.patch("subscribers/abc", {"headers": {}}).body["headers"] == {}
    assert Subscriber.objects.get().headers is None


def test_the_subscriptions_own_header_and_credentials_are_sent_instead(
    transactional_db: None,
) -> None:
    subscriber = factories.subscriber("abc", headers=SHARED | {"authorization": "ApiKey shared"})
    own = factories.subscription(subscriber=subscriber, headers={"x-team": "b"})
    signed_in = factories.subscription(subscriber=subscriber, auth={"type": "bearer", "token": "t"})
    endpoint = current_endpoint(own.pk)
    assert endpoint is not None
    assert endpoint.headers == {
        "X-Key": "shared secret",
        "authorization": "ApiKey shared",
        "x-team": "b",
    }
    endpoint = current_endpoint(signed_in.pk)
    assert endpoint is not None
    assert endpoint.headers == SHARED | {"Authorization": "Bearer t"}
    shown = [str(header) for header in secret_headers(own)]
    assert shown == ["X-Key: $X_KEY", "authorization: $AUTHORIZATION", "x-team: $X_TEAM"]


def test_a_change_makes_another_version_of_the_endpoints(transactional_db: None) -> None:
    subscription = factories.subscription()
    before = current_endpoint(subscription.pk)
    subscription.subscriber.headers = SHARED
    subscription.subscriber.save()
    after = current_endpoint(subscription.pk)
    assert before is not None
    assert after is not None
    assert before.version != after.version


@pytest.mark.django_db
def test_a_document_has_references_to_their_values() -> None:
    factories.subscriber("abc", headers=SHARED)
    content = export_configuration(only=["subscribers"])
    (entry,) = content["subscribers"]
    assert entry["headers"] == {
        "X-Key": {"from": "env:ABC_HEADER_X_KEY"},
        "X-Team": {"from": "env:ABC_HEADER_X_TEAM"},
    }
    assert reported(plan(content)) == []
    Subscriber.objects.all().delete()
    assert {fault.field for fault in faults(content)} == {"headers.X-Key", "headers.X-Team"}
    apply(content, secrets={"env:ABC_HEADER_X_KEY": "new", "env:ABC_HEADER_X_TEAM": "b"})
    assert Subscriber.objects.get().headers == {"X-Key": "new", "X-Team": "b"}


def test_the_form_masks_them_and_keeps_masked_values(admin_client: Client) -> None:
    subscriber = factories.subscriber("abc", headers=SHARED)
    url = f"/admin/subscriptions/subscriber/{subscriber.pk}/change/"
    page = admin_client.get(url).text
    assert f"X-Key: {MASKED}" in page
    assert "shared secret" not in page
    typed = {
        "name": "abc",
        "match_mode": "ALL",
        "processing": "SERIAL",
        "max_in_flight": 1,
        "max_queued_to_send": 500,
        "refill_level": 100,
        "keys-TOTAL_FORMS": 0,
        "keys-INITIAL_FORMS": 0,
        "header_lines": f"X-Key: {MASKED}\nX-Other: 2",
    }
    assert admin_client.post(url, typed).status_code == 302
    assert Subscriber.objects.get().headers == {"X-Key": "shared secret", "X-Other": "2"}
    assert ConfigurationChange.objects.latest("id").after == {"headers": f"{MASKED}, new value"}
    refused_page = admin_client.post(url, typed | {"header_lines": "webhook-id: 1"})
    assert refused_page.status_code == 200
    assert Subscriber.objects.get().headers == {"X-Key": "shared secret", "X-Other": "2"}
