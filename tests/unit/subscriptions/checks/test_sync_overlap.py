"""No two subscriptions of a SYNC event type match the same message, even if saved at once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from subscriptions.checks.sync_overlap import conflicting_subscription
from subscriptions.models import EventType, Kind, Scope, Subscription
from tests.support import factories
from tests.system.operation.installation import eventually
from tests.unit.delivery.api.client import ApiAnswer, Caller, caller, created, refused

EVENT = "Order.Presubmit"
FILTER = "$$->'Body'->>'number' = '7'"


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type(EVENT, kind=Kind.SYNC)


@pytest.fixture
def manager(event_type: EventType) -> Caller:
    factories.subscriber("crm")
    return caller()


def save(manager: Caller, name: str, **fields: Any) -> ApiAnswer:
    values = {
        "name": name,
        "subscriber": "crm",
        "event_type": EVENT,
        "endpoint": "https://127.0.0.1/rules",
    }
    return manager.post("subscriptions", values | fields)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"filter": FILTER}, {"filter": FILTER}),
        ({"filter": FILTER}, {"filter": f"  {FILTER.replace(' = ', '  =  ')} "}),
        (
            {"filter": FILTER, "header_filter_string": "p1"},
            {"filter": FILTER, "header_filter_string": "p1"},
        ),
        ({"status": "INACTIVE"}, {}),
    ],
    ids=["no filter", "same filter", "other spaces", "same header string", "one INACTIVE"],
)
def test_the_second_is_refused_and_the_first_is_named(
    manager: Caller, first: dict[str, str], second: dict[str, str]
) -> None:
    created(save(manager, "one", **first))
    problem = refused(save(manager, "two", **second), 409, "same-filter")
    assert "crm/one has the same filter" in problem["detail"]
    assert Subscription.objects.count() == 1


@pytest.mark.parametrize(
    "second",
    [
        {"filter": FILTER},
        {"header_filter_string": "p1"},
        {"filter": FILTER, "header_filter_string": "p1"},
    ],
)
def test_another_filter_or_header_string_is_enough(manager: Caller, second: dict[str, str]) -> None:
    created(save(manager, "one"))
    created(save(manager, "two", **second))


def test_other_kinds_are_free(manager: Caller) -> None:
    factories.event_type("Order.Created")
    for name in ("one", "two"):
        created(save(manager, name, event_type="Order.Created"))


def test_a_change_that_makes_them_the_same_is_refused(manager: Caller) -> None:
    created(save(manager, "one"))
    made = created(save(manager, "two", filter=FILTER))
    path = f"subscriptions/{made['id']}"
    refused(manager.patch(path, {"filter": ""}), 409, "same-filter")
    assert (
        manager.patch(
            path, {"filter": FILTER, "timeout_seconds": 5, "lets_pass_on_timeout": True}
        ).status
        == 200
    )
    row = Subscription.objects.get(name="two")
    assert (row.filter, row.lets_pass_on_timeout) == (FILTER, True)


def test_the_console_refuses_it_too(event_type: EventType) -> None:
    ann = Client()
    ann.force_login(User.objects.create_superuser("ann"))
    existing = factories.subscription("one", event_type=event_type)
    two = factories.subscription("two", event_type=event_type, filter=FILTER)
    values = {
        "name": "three",
        "subscriber": existing.subscriber_id,
        "event_type": event_type.pk,
        "policy": existing.policy_id,
        "mode": "PUSH",
        "endpoint": "https://127.0.0.1/rules",
        "timeout_seconds": "30",
        "lets_pass_on_timeout": "on",
        "position": "0",
        "auth_type": "none",
        "dedup_mode": "NONE",
        "dedup_window_seconds": "60",
        "join_mode": "NONE",
        "join_seconds": "60",
        "status": "ACTIVE",
    }
    answer = ann.post("/admin/subscriptions/subscription/add/", values)
    (said,) = answer.context["adminform"].form.errors["filter"]
    assert f"{existing} has the same filter" in said
    page = f"/admin/subscriptions/subscription/{two.pk}/change/"
    answer = ann.post(page, values | {"name": "two"})
    assert "filter" in answer.context["adminform"].form.errors
    assert ann.post(page, values | {"name": "two", "filter": FILTER}).status_code == 302
    two.refresh_from_db()
    assert two.lets_pass_on_timeout


@pytest.fixture
def saving(event_type: EventType) -> Iterator[threading.Event]:
    """Save a subscription for p1 in another transaction, which commits when the event is set."""
    saved, may_commit = threading.Event(), threading.Event()

    def save_and_wait() -> None:
        with transaction.atomic():
            assert (
                conflicting_subscription({"event_type": event_type, "header_filter_string": "p1"})
                is None
            )
            factories.subscription("first", event_type=event_type, header_filter_string="p1")
            saved.set()
            may_commit.wait()
        connection.close()

    thread = threading.Thread(target=save_and_wait)
    thread.start()
    saved.wait()
    yield may_commit
    may_commit.set()
    thread.join()


def is_session_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
            "AND usename = current_user AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone() is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_simultaneous_equal_subscription_waits_and_is_refused(
    manager: Caller, saving: threading.Event, is_new: bool
) -> None:
    mine = factories.subscription("mine", event_type=EventType.objects.get(name=EVENT))
    answers: list[ApiAnswer] = []

    def save_too() -> None:
        if is_new:
            answers.append(save(manager, "second", header_filter_string="p1"))
        else:
            answers.append(
                manager.patch(f"subscriptions/{mine.pk}", {"header_filter_string": "p1"})
            )
        connection.close()

    thread = threading.Thread(target=save_too)
    thread.start()
    eventually(is_session_waiting, "the second waits for the first")
    saving.set()
    thread.join()
    refused(answers[0], 409, "same-filter")


@pytest.mark.django_db(transaction=True)
def test_publishing_does_not_wait_for_a_subscription_being_saved(
    event_type: EventType, saving: threading.Event
) -> None:
    answer = caller(Scope.PUBLISH).publish(EVENT)
    assert (answer.status, answer.content) == (200, b"")
    assert not saving.is_set()
