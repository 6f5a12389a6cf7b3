"""Dedup and probe URL in the console's form of a subscription, with the API's refusals."""

from typing import Any

import pytest
from django.test import Client

from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.unit.delivery.console.subscription_form import errors, form_values

ADD = "/admin/subscriptions/subscription/add/"
PATH = "$$->'Body'->>'id'"


@pytest.fixture
def values(db: None) -> dict[str, Any]:
    return form_values()


def test_both_are_saved(ann: Client, values: dict[str, Any]) -> None:
    ann.post(
        ADD,
        values
        | {
            "dedup_mode": "PATH",
            "dedup_path": PATH,
            "dedup_window_seconds": "60",
            "probe_url": "http://127.0.0.1/up",
        },
    )
    row = Subscription.objects.get()
    assert (row.dedup_mode, row.dedup_path, row.dedup_window_seconds) == ("PATH", PATH, 60)
    assert row.probe_url == "http://127.0.0.1/up"


def test_a_stored_subscription_keeps_its_event_type_checks(
    ann: Client, values: dict[str, Any]
) -> None:
    stored = factories.subscription(event_type=factories.event_type(kind=Kind.QUEUE))
    page = f"/admin/subscriptions/subscription/{stored.pk}/change/"
    answer = ann.post(page, values | {"dedup_mode": "KEY"})
    assert "of kind QUEUE" in " ".join(errors(answer)["dedup_mode"])


def test_a_join_is_saved_and_what_the_page_hides_is_forgotten(
    ann: Client, values: dict[str, Any]
) -> None:
    ann.post(
        ADD,
        values
        | {"join_mode": "ALL", "join_name": "order", "join_path": PATH, "join_seconds": "60"},
    )
    row = Subscription.objects.get()
    assert (row.join_mode, row.join_name, row.join_path, row.join_seconds) == (
        "ALL",
        "order",
        PATH,
        60,
    )
    other = {"name": "other", "join_name": "order", "join_path": PATH}
    ann.post(ADD, values | other)
    assert Subscription.objects.get(name="other").join_name == ""
