"""While the database is read-only, each call that would change it is answered with 503.

Nothing is stored, and reading still works.
"""

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import close_old_connections, connection
from django.test import Client

from delivery.models import Callback, Delivery, Message, Status
from delivery.publishing.callback_tokens import callback_key, make_token
from subscriptions.models import (
    ConfigurationChange,
    Kind,
    Mode,
    Scope,
    Subscription,
    SubscriptionStatus,
)
from tests.support import factories
from tests.support.read_only_database import set_read_only
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, refused

pytestmark = pytest.mark.django_db(transaction=True)

EVENT = "Order.Placed"


def make_read_only() -> None:
    set_read_only("on")
    connection.close()


@pytest.fixture
def read_only() -> Iterator[Callable[[], None]]:
    """Yield a function that makes the database read-only; call it after the preparations."""
    try:
        yield make_read_only
    finally:
        set_read_only("off")
        connection.close()


class ChangingCalls:
    """The calls that change something."""

    def __init__(self) -> None:
        event_type = factories.event_type(EVENT)
        self.row = factories.delivery(subscription=factories.subscription(event_type=event_type))
        self.settled = factories.delivery(Status.REJECTED, subscription=self.row.subscription)
        publisher = factories.publisher("shop")
        self.publisher = caller(Scope.PUBLISH, publisher=publisher)
        owner = factories.subscriber("crm")
        factories.delivery(
            subscription=factories.subscription(
                subscriber=owner, mode=Mode.PULL, event_type=event_type
            )
        )
        self.box = caller(Scope.FETCH, subscriber=owner)
        (self.fetched,) = self.box.post("mailboxes/crm/next?max=1").body["messages"]
        factories.delivery(
            subscription=factories.subscription(
                subscriber=owner, mode=Mode.PULL, event_type=event_type
            )
        )
        factories.subscription(event_type=factories.event_type("Report", kind=Kind.QUEUE))
        self.publisher.publish("Report", CallbackURL="https://publisher.example/answers")
        token = make_token(Callback.objects.get().pk, key=callback_key(settings.SECRET_KEY))
        factories.subscription(event_type=factories.event_type("Ask", kind=Kind.SYNC))
        self.manager = caller()
        self.reader = caller(Scope.READ)
        subscription = f"subscriptions/{self.row.subscription_id}"
        items = [{"event": EVENT, "body": {}}]
        self.changes: dict[str, Callable[[], ApiAnswer]] = {
            "publish": lambda: self.publisher.publish(EVENT),
            "publish with a key": lambda: self.publisher.publish(EVENT, Idempotency_Key="k"),
            "batch": lambda: self.publisher.post("messages:batch", items),
            "sync": lambda: self.publisher.publish("Ask"),
            "callback": lambda: Caller(None).ask("POST", f"/callbacks/{token}", b"{}"),
            "fetch": lambda: self.box.post("mailboxes/crm/next?max=1"),
            "ack": lambda: self.box.post(
                "mailboxes/crm/ack", {"receipts": [self.fetched["receipt"]]}
            ),
            "configure": lambda: self.manager.post("event-types", {"name": "New"}),
            "toggle": lambda: self.manager.patch(subscription, {"status": "INACTIVE"}),
            "cancel": lambda: self.manager.post(f"deliveries/{self.row.pk}/cancel"),
            "resubmit": lambda: self.manager.post(f"deliveries/{self.settled.pk}/resubmit"),
            "resubmit many": lambda: self.manager.post(
                "resubmissions", {"filter": {"status": "REJECTED"}, "dry_run": False}
            ),
            "ready": lambda: self.manager.get("/readyz"),
        }


def test_a_change_is_503_and_changes_nothing(read_only: Callable[[], None]) -> None:
    asked = ChangingCalls()
    before = set(Delivery.objects.values_list("id", "status", "receive_count"))
    messages = Message.objects.count()
    read_only()
    for name, ask in asked.changes.items():
        answer = ask()
        problem = refused(answer, 503, "database-read-only")
        assert int(answer.headers["Retry-After"]) > 0, name
        assert "Repeat the request later" in problem["detail"]
    partly = asked.publisher.post("messages:batch?partial=true", [{"event": EVENT, "body": {}}])
    (result,) = partly.body["results"]
    assert result["error"]["type"] == "urn:inturn:problem:database-read-only"
    assert set(Delivery.objects.values_list("id", "status", "receive_count")) == before
    assert Message.objects.count() == messages


def test_reading_still_works(read_only: Callable[[], None]) -> None:
    asked = ChangingCalls()
    # The keys' last use is not recorded now, which fails no request.
    read_only()
    for path in ("deliveries", "messages", "lanes", f"deliveries/{asked.row.pk}"):
        assert asked.reader.get(path).status == 200, path
    assert asked.box.get("mailboxes/crm/status").status == 200


def test_the_next_request_notices_the_end_of_read_only(read_only: Callable[[], None]) -> None:
    asked = ChangingCalls()
    read_only()
    refused(asked.publisher.publish(EVENT), 503, "database-read-only")
    set_read_only("off")
    # The connection keeps its mode; the server ends it between two requests.
    close_old_connections()
    assert asked.publisher.publish(EVENT).status == 202
    assert Client().get("/readyz").status_code == 200


def test_the_console_shows_pages_and_a_note_that_changes_are_impossible(
    read_only: Callable[[], None],
) -> None:
    ann = Client(raise_request_exception=False)
    ann.force_login(User.objects.create_superuser("ann"))
    subscription = factories.subscription()
    read_only()
    assert ann.get("/admin/").status_code == 200
    assert ann.get("/admin/subscriptions/subscription/").status_code == 200
    answer = ann.post(f"/admin/subscriptions/subscription/{subscription.pk}/deactivate/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "is read-only now" in answer.text
    assert Subscription.objects.get(pk=subscription.pk).status == SubscriptionStatus.ACTIVE
    assert not ConfigurationChange.objects.exists()
