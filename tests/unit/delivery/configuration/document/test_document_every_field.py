"""The round trip of every field of the document, with values that are not the default."""

from typing import Any

import pytest
from django.db import models

from delivery.configuration.document.document import SECTIONS, Section
from delivery.configuration.document.document_json import document_text
from delivery.configuration.document.export import export_configuration
from subscriptions.models import CommonScript, EventType, Policy, Subscriber
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import apply, plan, remove_everything

pytestmark = pytest.mark.django_db

SECRETS = {
    "env:SHOP_HEADER_X_SHOP": "all of the shop",
    "env:SHOP_ORDERS_HEADER_X_KEY": "only orders",
    "env:SHOP_ORDERS_TOKEN": "token",
}
POLICY = {
    "success_codes": "200,201",
    "on_unreachable": "IN_PLACE",
    "on_unavailable": "IN_PLACE",
    "on_server_error": "BLOCK",
    "on_rate_limited": "BLOCK",
    "on_client_error": "IN_PLACE",
    "on_redirect": "REJECT",
    "in_doubt": "HOLD",
    "retry_schedule": "LISTED",
    "retry_waits": "5, 300",
    "retry_jitter": 0.25,
    "max_attempts": 4,
    "when_used_up": "SUSPEND",
}


def unusual_values() -> None:
    topic = factories.event_type(
        "Orders",
        description="of the shop",
        content_type="application/vnd.orders+json",
        ttl_seconds=60,
        durability="VOLATILE",
        forward_headers=["x-*"],
        sample={"id": 1},
        json_schema={"type": "object"},
    )
    builds = factories.event_type("Builds", kind="QUEUE", errors_when="GROUP")
    prices = factories.event_type("Prices", kind="SYNC")
    CommonScript.objects.create(
        name="dates", description="of days", runs_first=True, text="var day = 1;\n"
    )
    factories.policy("patient", description="waits", **(_other_values(Policy) | POLICY))
    shop = factories.subscriber(
        "shop",
        description="sells",
        processing="CONCURRENT",
        max_in_flight=8,
        max_queued_to_send=40,
        refill_level=20,
        by_priority=True,
        match_mode="FIRST",
        queue_id="q-7",
        application="shop",
        headers={"X-Shop": SECRETS["env:SHOP_HEADER_X_SHOP"]},
        status="HELD",
    )
    _subscriptions_of(shop, topic, prices)
    allowed = factories.publisher(
        "web", description="the site", all_event_types=False, errors_to="shop"
    )
    allowed.event_types.set([topic, builds])


def _subscriptions_of(shop: Subscriber, topic: EventType, prices: EventType) -> None:
    factories.subscription(
        "orders",
        subscriber=shop,
        event_type=topic,
        policy=Policy.objects.get(name="patient"),
        filter="$$->'Body'->>'id' = '1'",
        header_filter_string="proj1008",
        script="$outmessage = day;",
        description="of shops",
        takes_unmatched=True,
        position=7,
        headers={"X-Key": SECRETS["env:SHOP_ORDERS_HEADER_X_KEY"]},
        auth={"type": "bearer", "token": SECRETS["env:SHOP_ORDERS_TOKEN"]},
        forward_headers=["traceparent"],
        timeout_seconds=5,
        probe_url="https://receiver.example/probe",
        dedup_mode="PATH",
        dedup_path="$$->'Body'->>'id'",
        dedup_window_seconds=600,
        status="INACTIVE",
    )
    factories.subscription(
        "prices",
        subscriber=shop,
        event_type=prices,
        forward_authorization=True,
        lets_pass_on_timeout=True,
    )
    factories.subscription(
        "whole-orders",
        subscriber=shop,
        event_type=topic,
        join_mode="ALL",
        join_name="order",
        join_path="$$->'Body'->>'id'",
        join_seconds=60,
    )
    factories.subscription(
        "box", subscriber=shop, event_type=topic, mode="PULL", endpoint="", max_receives=5
    )


def _other_values(model: type[models.Model]) -> dict[str, Any]:
    """Return for each number and switch of the model a valid value that is not its default."""
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        match field:
            case models.BooleanField():
                values[field.name] = not field.default
            case models.IntegerField() | models.FloatField() if (
                field.default is not models.NOT_PROVIDED
            ):
                values[field.name] = (
                    2 if field.default is None or field.default > 2 else field.default + 1
                )
    return {name: value for name, value in values.items() if name not in ("is_built_in", "id")}


def _defaults(section: Section) -> dict[str, Any]:
    fields = {
        field.name: field
        for field in section.model._meta.get_fields()
        if hasattr(field, "get_default")
    }
    return {name: fields[name].get_default() for name in section.fields if name in fields}


def test_every_field_comes_back_as_it_was() -> None:
    unusual_values()
    first = export_configuration()
    remove_everything()
    apply(first, secrets=SECRETS)
    assert document_text(export_configuration()) == document_text(first)
    assert plan(first, secrets=SECRETS, prune=True).changes == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_that_round_trip_has_a_value_for_every_field(section: Section) -> None:
    unusual_values()
    entries = export_configuration()[section.name]
    usual = {
        name
        for name, default in _defaults(section).items()
        if all(entry[name] in (default, "", None, [], {}) for entry in entries)
    }
    assert usual == set()
