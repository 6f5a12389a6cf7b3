"""Lists that refresh: the rows of the asked page alone, and the number of newer ones."""

import re

import pytest
from django.test import Client

from delivery.console.shared import live
from delivery.models import JournalEntry
from delivery.states import Status
from tests.support import factories
from tests.unit.delivery.console.refreshing import refresh


def rows_and_new(client: Client, address: str, newest: int) -> tuple[list[int], str]:
    """Return the ids of the rows and the number of newer ones that match the same filters."""
    answer = refresh(client, address, live.ROWS_PART, **{live.HEADER: str(newest)})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    ids, new = re.findall(r'data-ids="([\d,]*)" data-new="([^"]*)"', answer.text)[0]
    return [int(id) for id in ids.split(",") if id], new


def test_deliveries_are_refreshed_by_their_filters(ann: Client) -> None:
    failed = [factories.delivery(Status.REJECTED).pk for _ in range(3)]
    factories.delivery()
    address = f"/admin/delivery/delivery/?tab=failed&before={failed[1]}"
    assert rows_and_new(ann, address, failed[0]) == ([failed[0]], "2")
    assert rows_and_new(ann, "/admin/delivery/delivery/", failed[2])[1] == "1"


def test_messages_are_refreshed_by_their_filters(ann: Client) -> None:
    failed = [factories.delivery(Status.REJECTED).message_id for _ in range(2)]
    factories.message()
    assert rows_and_new(ann, f"/admin/delivery/message/?before={failed[1]}", failed[0]) == (
        [failed[0]],
        "2",
    )
    assert rows_and_new(ann, "/admin/delivery/message/?tab=failed", failed[0]) == (
        failed[::-1],
        "1",
    )


def test_a_search_in_texts_is_not_live(ann: Client) -> None:
    address = "/admin/delivery/message/?body=x&since=2026-01-01"
    assert rows_and_new(ann, address, 0)[1] == ""
    assert "data-live" not in ann.get(address).text
    assert "data-live" in ann.get("/admin/delivery/message/").text


def test_the_journal_is_live_and_counts_to_a_limit(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "NEW_LIMIT", 2)
    entries = [JournalEntry.objects.create(kind="SKIPPED", text="x").pk for _ in range(4)]
    assert rows_and_new(ann, "/admin/delivery/journalentry/", entries[0])[1] == "2+"


def test_only_people_with_the_right_get_rows(reader: Client, client: Client) -> None:
    address = "/admin/delivery/journalentry/"
    assert "HX-Refresh" not in refresh(reader, address, live.ROWS_PART).headers
    assert refresh(client, address, live.ROWS_PART).headers["HX-Refresh"] == "true"
