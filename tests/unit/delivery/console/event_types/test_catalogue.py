"""The event catalogue: event types with their publishers, subscribers, samples and ways to publish.

It reports a sample that does not fit.
"""

import json
import shlex
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from subscriptions.models import EventType, SubscriptionStatus
from tests.support import factories

ROOT = "/admin/subscriptions/eventtype"
SCHEMA = {"type": "object", "required": ["number"], "properties": {"number": {"type": "integer"}}}


@pytest.fixture
def made(db: None) -> EventType:
    """An event type with two publishers and two subscriptions, one of them INACTIVE."""
    row = factories.event_type(
        "Order.Made",
        description="An order was made.",
        sample={"number": 7, "by": "O'Hara"},
        json_schema=SCHEMA,
    )
    factories.publisher("shop")
    factories.publisher("till", all_event_types=False).event_types.add(row)
    factories.publisher("other", all_event_types=False)
    factories.subscription(event_type=row)
    factories.subscription(event_type=row, status=SubscriptionStatus.INACTIVE)
    factories.message(event_type=row, published_at=timezone.now() - timedelta(days=3))
    factories.message(event_type=row, published_at=timezone.now() - timedelta(hours=2))
    factories.message()
    return row


def test_a_reader_finds_everything_on_one_page(reader: Client, made: EventType) -> None:
    page = unescape(reader.get(f"{ROOT}/{made.pk}/change/").text)
    for said in (
        "TOPIC: to every matching subscription",
        "An order was made.",
        '"number": 7',
        '"required": [',
        "1 ACTIVE</a>, 1 not ACTIVE",
        "2 h ago",
        ">shop</a>",
        ">till</a>",
        "/api/v1/events/Order.Made/messages",
    ):
        assert said in page
    assert ">other</a>" not in page
    assert "New subscription" not in page


def test_the_command_to_publish_can_be_pasted_into_a_shell(ann: Client, made: EventType) -> None:
    entry = ann.get(f"{ROOT}/{made.pk}/change/").context["entry"]
    words = shlex.split(entry.publish_command)
    assert json.loads(words[-1]) == made.sample
    assert "Content-Type: application/json" in words
    assert json.loads(shlex.split(entry.subscribe_command)[-1])["event_type"] == "Order.Made"


def test_the_list_answers_at_a_glance(
    ann: Client, made: EventType, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    factories.event_type("Quiet")
    with django_assert_num_queries(7):
        page = ann.get(f"{ROOT}/").text
    for said in (
        "1 ACTIVE</a>, 1 not ACTIVE",
        "2 h ago",
        "sample, schema",
        "never",
        "An order was made.",
    ):
        assert said in page


@pytest.mark.django_db
def test_missing_parts_name_the_next_step(ann: Client) -> None:
    page = ann.get(f"{ROOT}/{factories.event_type().pk}/change/").text
    for said in ("none yet", "never published", "No sample yet. Give one below"):
        assert said in page


def test_reserved_event_types_say_so(ann: Client, db: None) -> None:
    row = EventType.objects.get(name="Inturn.Delivery.Failed")
    page = ann.get(f"{ROOT}/{row.pk}/change/").text
    assert "Inturn itself" in page
    assert "Publish it" not in page


class TestTheSample:
    @pytest.fixture
    def values(self) -> dict[str, Any]:
        return {
            "name": "Paid",
            "kind": "TOPIC",
            "content_type": "application/json",
            "durability": "GUARANTEED",
            "errors_when": "DELIVERY",
            "json_schema": json.dumps(SCHEMA),
        }

    def test_a_sample_against_the_schema_is_stored_with_a_warning(
        self, ann: Client, values: dict[str, Any]
    ) -> None:
        page = unescape(
            ann.post(f"{ROOT}/add/", values | {"sample": '{"number": "7"}'}, follow=True).text
        )
        assert (
            "The sample of Paid breaks its JSON Schema at $.number: '7' is not of type 'integer'"
            in page
        )
        row = EventType.objects.get(name="Paid")
        assert "breaks the JSON Schema at $.number" in ann.get(f"{ROOT}/{row.pk}/change/").text

    @pytest.mark.parametrize("sample", ['{"number": 7}', ""])
    def test_a_valid_or_missing_sample_gives_no_warning(
        self, ann: Client, values: dict[str, Any], sample: str
    ) -> None:
        page = ann.post(f"{ROOT}/add/", values | {"sample": sample}, follow=True).text
        assert "breaks" not in page
        assert EventType.objects.filter(name="Paid").exists()

    def test_a_sample_that_is_no_json_is_refused_with_the_place(
        self, ann: Client, values: dict[str, Any]
    ) -> None:
        page = unescape(ann.post(f"{ROOT}/add/", values | {"sample": '{"number":\n7'}).text)
        assert "This is not JSON: Expecting ',' delimiter, line 2, column 2." in page
        assert not EventType.objects.filter(name="Paid").exists()
