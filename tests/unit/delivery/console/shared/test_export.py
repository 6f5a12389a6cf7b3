"""Exports of whole lists: with the page's filters, safe for spreadsheets, a part at a time."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from delivery.console.shared import export
from delivery.models import JournalEntry, PayloadView
from subscriptions.models import ConfigurationChange

CHANGES = "/admin/subscriptions/configurationchange"
AT = datetime(2026, 8, 2, 10, 15, tzinfo=UTC)


def change(name: str, *, at: datetime = AT, **fields: Any) -> ConfigurationChange:
    given = {"actor": "ann", "action": "changed", "object_type": "policy"} | fields
    row = ConfigurationChange.objects.create(object_name=name, **given)
    ConfigurationChange.objects.filter(pk=row.pk).update(at=at)
    return row


def downloaded(client: Client, address: str) -> str:
    answer: Any = client.get(address)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def test_csv_has_the_names_first_and_a_line_for_each_row_newest_first(ann: Client) -> None:
    change("first")
    change("second", before={"a": 1}, after={"a": 2})
    names, *rows = csv.reader(io.StringIO(downloaded(ann, f"{CHANGES}/export/csv/")))
    assert names == ["id", "at", "actor", "action", "object_type", "object_name", "before", "after"]
    assert [row[5] for row in rows] == ["second", "first"]
    assert rows[0][1:] == [
        "2026-08-02T10:15:00+00:00",
        "ann",
        "changed",
        "policy",
        "second",
        '{"a": 1}',
        '{"a": 2}',
    ]


def test_json_lines_keep_structured_values(ann: Client) -> None:
    change("mine", before=None, after={"headers": {"x": "é"}})
    (line,) = downloaded(ann, f"{CHANGES}/export/jsonl/").splitlines()
    assert json.loads(line)["after"] == {"headers": {"x": "é"}}
    assert json.loads(line)["before"] is None
    assert "é" in line


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(ann: Client, begins: str) -> None:
    change(f"{begins}HYPERLINK(1)", actor=f"{begins}cmd")
    _, row = csv.reader(io.StringIO(downloaded(ann, f"{CHANGES}/export/csv/"), newline=""))
    assert row[5] == f"'{begins}HYPERLINK(1)"
    assert row[2] == f"'{begins}cmd"


def test_contains_all_pages_of_the_filtered_list(
    ann: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 2)
    wanted = [change(f"wanted {number}", actor="eve").pk for number in range(7)]
    change("other")
    lines = downloaded(ann, f"{CHANGES}/export/jsonl/?actor=eve&before={wanted[2]}").splitlines()
    assert [json.loads(line)["id"] for line in lines] == wanted[::-1]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_incomplete_export_says_so(
    ann: Client, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 2)
    for number in range(5):
        change(f"number {number}")
    answer: Any = ann.get(f"{CHANGES}/export/{form}/")
    lines = iter(answer.streaming_content)
    began = [next(lines), next(lines)]
    break_the_transaction()
    *_, last = [line.decode() for line in (*began, *lines)]
    if form == "csv":
        assert next(csv.reader([last])) == [export.BROKEN_OFF]
    else:
        assert json.loads(last) == {"broken_off": export.BROKEN_OFF}


def test_an_export_that_fails_before_its_first_line_is_an_error(ann: Client) -> None:
    change("mine")
    answer: Any = ann.get(f"{CHANGES}/export/csv/")
    break_the_transaction()
    with pytest.raises(DatabaseError):
        list(answer.streaming_content)


def break_the_transaction() -> None:
    """Break the transaction: from now on the database refuses every statement."""
    with connection.cursor() as cursor, pytest.raises(DatabaseError):
        cursor.execute("SELECT 1 / 0")


def test_the_page_links_to_an_export_with_its_filters(ann: Client) -> None:
    page = ann.get(f"{CHANGES}/?actor=eve&before=9").text
    assert f'href="{CHANGES}/export/csv/?actor=eve"' in page
    assert f'href="{CHANGES}/export/jsonl/?actor=eve"' in page


def test_is_a_file_that_is_not_cached(ann: Client) -> None:
    answer = ann.get(f"{CHANGES}/export/csv/")
    assert answer.headers["Content-Disposition"].startswith(
        'attachment; filename="configuration-changes-'
    )
    assert "no-store" in answer.headers["Cache-Control"]


def test_another_format_is_404(ann: Client) -> None:
    assert ann.get(f"{CHANGES}/export/xlsx/").status_code == 404


@pytest.mark.django_db
def test_journal_and_payload_views_are_exported_alike(ann: Client) -> None:
    JournalEntry.objects.create(kind="BLOCKED", text="It is.", message_id=7, lane_id=3)
    (line,) = downloaded(
        ann, "/admin/delivery/journalentry/export/jsonl/?kind=BLOCKED"
    ).splitlines()
    reported = json.loads(line)
    assert (reported["kind"], reported["text"], reported["actor"], reported["message"]) == (
        "BLOCKED",
        "It is.",
        "Inturn",
        "msg_7",
    )
    PayloadView.objects.create(actor="una", message_id=7, hour=AT, first_at=AT, last_at=AT, views=2)
    (line,) = downloaded(
        ann, "/admin/delivery/payloadview/export/jsonl/?actor=una&message=msg_7"
    ).splitlines()
    assert json.loads(line)["views"] == 2


class TestTimes:
    @pytest.fixture(autouse=True)
    def _made(self, db: None) -> None:
        for minutes in range(0, 60, 10):
            change(f"{minutes}", at=AT + timedelta(minutes=minutes))

    def names(self, client: Client, query: str) -> list[str]:
        shown = client.get(f"{CHANGES}/?{query}").context["cl"].result_list
        return [row.object_name for row in shown]

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("since=2026-08-02T10:45", ["50", "40", "30"]),
            ("until=2026-08-02T10:35", ["10", "0"]),
            ("since=2026-08-02T10:25&until=2026-08-02T10:45", ["20", "10"]),
            ("since=2026-08-03T00:00", []),
            ("until=2026-08-01T00:00", []),
            ("since=2026-08-01T00:00&until=2026-08-03T00:00", ["50", "40", "30", "20", "10", "0"]),
        ],
    )
    def test_a_range_has_its_beginning_and_not_its_end(
        self, ann: Client, query: str, found: list[str]
    ) -> None:
        assert self.names(ann, query) == found

    @pytest.mark.parametrize("moment", ["nonsense", "0001-01-01T00:00", "9999-12-31T23:59:59", ""])
    def test_an_invalid_moment_filters_nothing(self, ann: Client, moment: str) -> None:
        assert len(self.names(ann, f"since={moment}&until={moment}")) == 6
