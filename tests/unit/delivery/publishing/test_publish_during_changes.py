"""Publishing continues during configuration: rows locked for a change can still be referred to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from psycopg.errors import LockNotAvailable

from delivery.database.connections import connection_parameters
from delivery.support import toggle
from subscriptions.checks import addresses
from subscriptions.models import EventType, Publisher, Subscription, SubscriptionStatus
from tests.support import factories
from tests.unit.delivery.api.client import caller
from tests.unit.delivery.support.test_bulk_jobs_resubmissions import finish

pytestmark = pytest.mark.django_db(transaction=True)

# The rows that a message and its deliveries refer to, locked as foreign key checks lock them.
REFERRING = [
    f"SELECT FROM {model._meta.db_table} FOR KEY SHARE NOWAIT"
    for model in (EventType, Publisher, Subscription)
]


class ConcurrentPublisher:
    """Tries after each statement of a transaction whether another connection could publish."""

    def __init__(self, own: "psycopg.Connection[Any]") -> None:
        self._own = own
        self.could_publish: list[bool] = []

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        result = execute(*statement)
        if connection.in_atomic_block:
            self.could_publish.append(self._try())
        return result

    def _try(self) -> bool:
        try:
            for referring in REFERRING:
                self._own.execute(referring.encode())
        except LockNotAvailable:
            return False
        return True


@contextmanager
def concurrent_publisher() -> Iterator[list[bool]]:
    with psycopg.connect(**connection_parameters(), autocommit=True) as own:
        meanwhile = ConcurrentPublisher(own)
        with connection.execute_wrapper(meanwhile):
            yield meanwhile.could_publish


@pytest.fixture
def subscription() -> Subscription:
    return factories.subscription("orders", event_type=factories.event_type("A"))


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("event-types/A", {"description": "new"}),
        ("publishers/shop", {"event_types": ["A"]}),
        ("subscriptions/{id}", {"timeout_seconds": 5}),
        ("subscriptions/{id}", {"status": "INACTIVE"}),
        ("subscriptions/{id}/secrets", None),
    ],
)
def test_a_change_by_the_api_does_not_wait_for_publishing(
    subscription: Subscription, path: str, given: dict[str, Any] | None
) -> None:
    factories.publisher("shop")
    manager = caller()
    with concurrent_publisher() as could_publish:
        address = path.format(id=subscription.pk)
        answer = manager.post(address) if given is None else manager.patch(address, given)
    assert answer.status in (200, 201), answer
    assert could_publish
    assert all(could_publish)


def test_cancelling_a_backlog_does_not_wait_for_publishing(subscription: Subscription) -> None:
    factories.delivery(subscription=subscription)
    Subscription.objects.update(status=SubscriptionStatus.INACTIVE)
    with concurrent_publisher() as could_publish:
        (job,) = toggle.activate_owner(subscription, backlog="cancel", actor="ann")
        assert job is not None
        with transaction.atomic():
            finish(job)
    assert could_publish
    assert all(could_publish)


@pytest.mark.parametrize("path", ["eventtype/{event_type_id}/change/", "subscription/{pk}/rotate/"])
def test_a_change_in_the_console_does_not_wait_for_publishing(
    subscription: Subscription, path: str
) -> None:
    ann = Client()
    ann.force_login(User.objects.create_superuser("ann"))
    values = {
        "name": "A",
        "kind": "TOPIC",
        "content_type": "text/plain",
        "durability": "GUARANTEED",
    }
    values |= {"errors_when": "DELIVERY"}
    address = path.format(pk=subscription.pk, event_type_id=subscription.event_type_id)
    with concurrent_publisher() as could_publish:
        answer = ann.post(f"/admin/subscriptions/{address}", values)
    assert answer.status_code == 302
    assert could_publish
    assert all(could_publish)


def test_re_encryption_does_not_wait_for_publishing(subscription: Subscription) -> None:
    with concurrent_publisher() as could_publish:
        call_command("rotate_keys")
    assert could_publish
    assert all(could_publish)


def test_no_new_row_refers_to_an_object_being_deleted() -> None:
    # Otherwise the deletion would fail at its commit, after the answer that it is possible.
    factories.event_type("A")
    manager = caller()
    with concurrent_publisher() as could_publish:
        assert manager.delete("event-types/A").status == 204
    assert not any(could_publish)


def test_a_host_is_resolved_before_anything_is_locked(
    subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_transaction: list[bool] = []

    def check(*_: object, **__: object) -> None:
        in_transaction.append(connection.in_atomic_block)

    monkeypatch.setattr(addresses, "check_endpoint", check)
    given = {"endpoint": "https://new.example/hook"}
    assert caller().patch(f"subscriptions/{subscription.pk}", given).status == 200
    assert in_transaction == [False]
