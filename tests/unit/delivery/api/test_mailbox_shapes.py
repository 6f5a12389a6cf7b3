"""Deliveries of mailboxes and delivered messages, as the API shows them."""

from datetime import timedelta

from django.utils import timezone

from delivery.states import Status
from subscriptions.models import Mode
from tests.support import factories
from tests.unit.delivery.api.client import Caller


def test_a_delivery_shows_its_receive_count_and_lease(manager: Caller) -> None:
    subscription = factories.subscription(mode=Mode.PULL, max_receives=4)
    until = timezone.now() + timedelta(minutes=5)
    row = factories.delivery(
        Status.IN_FLIGHT, subscription=subscription, receive_count=2, lease_expires_at=until
    )
    shown = manager.get(f"deliveries/{row.pk}").body
    assert (shown["mode"], shown["status"], shown["lane"]) == ("PULL", "IN_FLIGHT", None)
    assert (shown["receive_count"], shown["max_attempts"]) == (2, 4)
    assert shown["lease_expires_at"].startswith(f"{until:%Y-%m-%dT%H:%M:%S}")


def test_deliveries_of_a_mailbox_are_found_by_their_status(manager: Caller) -> None:
    subscription = factories.subscription(mode=Mode.PULL)
    out = factories.delivery(Status.IN_FLIGHT, subscription=subscription)
    factories.delivery(subscription=subscription)
    found = manager.get("deliveries?status=IN_FLIGHT").body["results"]
    assert [row["id"] for row in found] == [out.pk]


def test_a_message_shows_its_destination(manager: Caller) -> None:
    delivered, published = factories.message(destination="crm/orders"), factories.message()
    assert manager.get(f"messages/{delivered.public_id}").body["destination"] == "crm/orders"
    assert manager.get(f"messages/{published.public_id}").body["destination"] is None


def test_messages_are_found_by_their_destination(manager: Caller) -> None:
    factories.message()
    factories.message(destination="crm")
    wanted = factories.message(destination="crm/orders")
    found = manager.get("messages?destination=crm/orders").body["results"]
    assert [(row["id"], row["destination"]) for row in found] == [(wanted.public_id, "crm/orders")]
