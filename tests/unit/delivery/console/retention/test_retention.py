"""Retention in the console: periods, removed rows, and a button for administrators."""

from dataclasses import replace

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from config.retention_days import DEFAULT_DAYS
from delivery.models import Archived, RetentionRun, RetentionState
from subscriptions.models import ConfigurationChange
from tests.unit.delivery.console.refreshing import refresh
from tests.unit.delivery.maintenance.retaining import is_there, old, past, run_whole

PAGE = "/admin/delivery/retentionrun/"
BUTTON = f"{PAGE}start/"

pytestmark = pytest.mark.django_db


def test_the_page_shows_the_retention_periods(ann: Client, settings: Settings) -> None:
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, retention_days={**DEFAULT_DAYS, "DELIVERED": 1}
    )
    page = ann.get(PAGE).text
    for how_long, what in (
        ("1 day", "DELIVERED"),
        ("30 days", "REDUNDANT, DUPLICATE, SHADOW, messages without a subscription"),
        ("90 days", "CANCELLED, EXPIRED, REJECTED, 3xxNOTSUPPORTED, FAILED"),
        ("365 days", "the journal"),
        ("forever", "IN_DOUBT"),
    ):
        assert f"<dt>{how_long}</dt><dd>{what}</dd>" in page


def test_the_page_shows_that_open_deliveries_are_kept(ann: Client) -> None:
    assert "Open deliveries are never removed." in ann.get(PAGE).text


def test_the_page_shows_how_far_the_archive_allows_removal(ann: Client, settings: Settings) -> None:
    assert "nothing is archived yet" in ann.get(PAGE).text
    Archived.objects.create(pk=1, until="2026-05-04T12:00Z")
    page = ann.get(PAGE).text
    assert 'those settled before <time datetime="2026-05-04T12:00:00+00:00"' in page
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, retention_unarchived=True)
    assert "Unarchived messages are removed as well" in ann.get(PAGE).text


def test_a_pass_is_begun_by_a_button_and_listed(ann: Client) -> None:
    Archived.objects.create(pk=1, until=past(1))
    row = old()
    assert BUTTON in ann.get(PAGE).text
    assert "It has started" in ann.post(BUTTON, {"next": PAGE}, follow=True).text
    page = ann.get(PAGE).text
    run = RetentionRun.objects.get()
    assert f"Pass {run.pk} is running" in page
    assert BUTTON not in page
    assert "Nothing was done" in ann.post(BUTTON, {"next": PAGE}, follow=True).text
    run_whole()
    assert not is_there(row)
    assert '<td class="field-messages_removed' in ann.get(PAGE).text
    change = ConfigurationChange.objects.get()
    assert (change.actor, change.action) == ("ann", "started")


def test_the_progress_refreshes_itself_until_the_pass_has_ended(ann: Client) -> None:
    run = RetentionRun.objects.create(first_id=11, last_id=20, position=15, messages=1234)
    answer = refresh(ann, PAGE, "retention")
    assert "1,234 messages removed" in answer.text
    assert 'value="0.5000" max="1"' in answer.text
    assert "result_list" not in answer.text
    RetentionRun.objects.filter(pk=run.pk).update(state=RetentionState.DONE, ended_at=past(0))
    assert refresh(ann, PAGE, "retention").headers["HX-Refresh"] == "true"


def test_readers_start_no_pass(reader: Client) -> None:
    assert "Retention periods" in reader.get(PAGE).text
    assert BUTTON not in reader.get(PAGE).text
    assert reader.post(BUTTON).status_code == 403
    assert not RetentionRun.objects.exists()


def test_without_the_right_the_page_is_forbidden(db: None) -> None:
    user = User.objects.create_user("sue", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_message"))
    client = Client()
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    assert refresh(client, PAGE, "retention").headers["HX-Refresh"] == "true"


def test_a_pass_has_no_page_but_the_list(ann: Client) -> None:
    run = RetentionRun.objects.create(state="DONE", ended_at=past(0))
    assert ann.get(f"{PAGE}{run.pk}/change/").headers["Location"] == PAGE


def test_the_list_costs_the_same_however_many(
    ann: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(60):
        RetentionRun.objects.create(state="DONE", ended_at=past(0))
    with django_assert_max_num_queries(10):
        ann.get(PAGE)
