"""The TeamForge publish addresses of a publisher, on its page."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from subscriptions.models import ConfigurationChange, Publisher, PublishId
from subscriptions.publish_ids import MAX_VALID, publisher_of_id, rotate_publish_id
from tests.support import factories


@pytest.fixture
def publisher(db: None) -> Publisher:
    return factories.publisher("jenkins")


def address(publisher: Publisher, action: str = "change/") -> str:
    return f"/admin/subscriptions/publisher/{publisher.pk}/{action}"


def test_an_address_is_made_and_shown_once(ann: Client, publisher: Publisher) -> None:
    assert "Create a TeamForge publish address" in ann.get(address(publisher)).text
    shown = ann.post(address(publisher, "address/"), follow=True)
    row = PublishId.objects.get()
    first, second = re.findall(r"/inbox/\{eventName\}/([0-9a-f-]{36})", shown.text)
    assert first == second
    text: str = first
    assert publisher_of_id(text, now=timezone.now()) == publisher
    page = ann.get(address(publisher)).text
    assert "Rotate the publish address" in page
    assert f"/v4/inbox/{{eventName}}/…{row.hint}" in page
    assert text not in page
    assert ConfigurationChange.objects.get().action == "created"


def test_an_old_address_ends_at_once_when_asked(ann: Client, publisher: Publisher) -> None:
    old, text = rotate_publish_id(publisher, now=timezone.now())
    ann.post(address(publisher, "address/"))
    ann.post(address(publisher, f"addresses/{old.pk}/end/"))
    assert publisher_of_id(text, now=timezone.now()) is None
    assert ConfigurationChange.objects.first().action == "ended"  # type: ignore[union-attr]
    again = ann.post(
        address(publisher, f"addresses/{old.pk}/end/"), {"next": address(publisher)}, follow=True
    )
    assert "This address was already revoked." in again.text


def test_only_so_many_are_valid_at_a_time(ann: Client, publisher: Publisher) -> None:
    for _ in range(MAX_VALID):
        rotate_publish_id(publisher, now=timezone.now())
    page = ann.post(address(publisher, "address/"), {"next": address(publisher)}, follow=True).text
    assert "5 publish ids of jenkins are valid. End one first." in page
