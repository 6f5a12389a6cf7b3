"""Disabled URLs, and the button that releases one."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from delivery.models import JournalEntry, JournalKind, UrlHealth
from subscriptions.values.shown_addresses import secret_address_key
from tests.support import factories

LIST = "/admin/delivery/urlhealth"
URL = "https://receiver.example:8443/hook?a=1&b=%20x"


@pytest.fixture
def frozen(db: None) -> UrlHealth:
    return UrlHealth.objects.create(
        url=URL,
        state="FROZEN",
        since=timezone.now() - timedelta(hours=3),
        attempts=101,
        failures=72,
        failures_in_row=2001,
        last_success_at=timezone.now() - timedelta(days=4),
    )


def page_of(client: Client, health: UrlHealth) -> Any:
    return client.get(f"{LIST}/{secret_address_key(health.url)}/change/")


def release(client: Client, health: UrlHealth) -> str:
    return client.post(f"{LIST}/{secret_address_key(health.url)}/release/", {}, follow=True).text


def test_the_list_starts_with_urls_that_wait_for_a_person(ann: Client, frozen: UrlHealth) -> None:
    UrlHealth.objects.create(url="https://a.example/")
    disabled = UrlHealth.objects.create(
        url="https://b.example/", state="DISABLED", next_probe_at=timezone.now()
    )
    factories.subscription(endpoint=f"PUT:{URL}")
    answer = ann.get(f"{LIST}/")
    assert [row.state for row in answer.context["cl"].result_list] == [
        "FROZEN",
        "DISABLED",
        "ENABLED",
    ]
    assert answer.context["cl"].result_list[0].counted == 1
    assert "71 % of 101" in answer.text
    assert "2,001" in answer.text
    found = ann.get(f"{LIST}/?state=DISABLED").context["cl"].result_list
    assert [row.pk for row in found] == [disabled.pk]


def test_a_url_without_a_success_says_so(ann: Client, frozen: UrlHealth) -> None:
    assert "<dd>\n            never" in page_of(ann, frozen).text
    assert ">never<" in ann.get(f"{LIST}/").text
    UrlHealth.objects.update(first_success_at=timezone.now() - timedelta(days=9))
    assert "never" not in page_of(ann, frozen).text
    assert ">never<" not in ann.get(f"{LIST}/").text


def test_the_page_names_subscriptions_and_held_lanes(ann: Client, frozen: UrlHealth) -> None:
    held = factories.subscription(endpoint=URL, policy=factories.policy("workfront-48h"))
    other = factories.subscription(endpoint=URL)
    page = page_of(ann, frozen).text
    for subscription in (held, other):
        assert str(subscription) in page
    assert page.count("without circuit breaker") == 1


def test_a_button_releases_it_once(ann: Client, frozen: UrlHealth) -> None:
    assert "Release" in page_of(ann, frozen).text
    assert "is released; its waiting deliveries are sent." in release(ann, frozen)
    frozen.refresh_from_db()
    assert (frozen.state, frozen.attempts, frozen.failures_in_row) == ("ENABLED", 0, 0)
    assert JournalEntry.objects.get(kind=JournalKind.ENABLED).actor == "ann"
    assert "is ENABLED already" in release(ann, frozen)
    assert "Release" not in page_of(ann, frozen).text


def test_readers_release_nothing(reader: Client, frozen: UrlHealth) -> None:
    assert "Release" not in page_of(reader, frozen).text
    assert reader.post(f"{LIST}/{secret_address_key(URL)}/release/").status_code == 403
    frozen.refresh_from_db()
    assert frozen.state == "FROZEN"


def test_an_unknown_url_is_404(ann: Client, db: None) -> None:
    assert ann.get(f"{LIST}/nothing/change/").status_code == 404
    assert ann.post(f"{LIST}/nothing/release/").status_code == 404
    assert ann.get(f"{LIST}/nothing/release/").status_code == 405


def test_the_page_of_a_subscription_shows_that_its_url_is_stopped(
    ann: Client, frozen: UrlHealth
) -> None:
    held = factories.subscription(endpoint=f"PATCH:{URL}", policy=factories.policy("workfront-48h"))
    other = factories.subscription(endpoint=URL)
    page = ann.get(f"/admin/subscriptions/subscription/{held.pk}/").text
    assert "Nothing is sent to its URL since" in page
    assert f"{LIST}/{secret_address_key(URL)}/release/" in page
    # Its policy ignores the URL's health.
    page = ann.get(f"/admin/subscriptions/subscription/{other.pk}/").text
    assert "Nothing is sent to its URL" not in page


def test_a_share_of_zero_attempts_is_no_division_by_zero(ann: Client, db: None) -> None:
    health = UrlHealth.objects.create(url=URL)
    assert page_of(ann, health).status_code == 200
