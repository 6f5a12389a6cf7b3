"""The archive in the console: its content, and messages in it alone, by id and by time."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from delivery.models import ArchiveChunk, ArchiveFile, ChunkKind, ChunkState, PayloadView
from tests.support import factories
from tests.unit.delivery.console import history_rows
from tests.unit.delivery.console.history_rows import ARCHIVED
from tests.unit.delivery.history.archived import AT, message, seconds, write

PAGE = "/admin/delivery/archivefile/"
MESSAGE = f"{PAGE}message/{ARCHIVED}/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def archive(tmp_path: Path, settings: Settings) -> str:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def archived(archive: str) -> str:
    """A message in the archive alone, with its delivery."""
    history_rows.archived_message(archive)
    return archive


def test_the_archive_page_shows_contents_and_end(ann: Client, archived: str) -> None:
    page = ann.get(PAGE).text
    assert "contains all deliveries settled before" in page
    assert f"<code>{archived}</code>" in page
    assert "messages/day=" in page


def test_files_that_do_not_count_are_not_shown(ann: Client, archived: str) -> None:
    now = AT
    done = ArchiveChunk.objects.create(
        kind=ChunkKind.COMPACTION,
        state=ChunkState.DONE,
        run_id=2,
        since=now,
        until=now,
        ended_at=now,
    )
    writing = ArchiveChunk.objects.create(kind=ChunkKind.COMPACTION, run_id=3, since=now, until=now)
    replaced = ArchiveFile.objects.get(table="messages")
    ArchiveFile.objects.filter(pk=replaced.pk).update(replaced_by=done)
    history_rows.archive_file(path="messages/day=1/not-yet.parquet", chunk=writing)
    page = ann.get(PAGE).text
    assert replaced.path not in page
    assert "not-yet" not in page
    assert "An export is running" in page


def test_without_an_archive_it_offers_the_export(ann: Client, reader: Client) -> None:
    assert ">empty</span>" in ann.get(PAGE).text
    assert "/request/export/" in ann.get(PAGE).text
    assert "/request/export/" not in reader.get(PAGE).text


@pytest.mark.parametrize("typed", [f"msg_{ARCHIVED}", f" {ARCHIVED} "])
def test_an_id_leads_to_its_message(ann: Client, archived: str, typed: str) -> None:
    assert ann.get(f"{PAGE}lookup/", {"id": typed}).headers["Location"] == MESSAGE


def test_an_invalid_id_is_reported(ann: Client) -> None:
    assert "is not the id of a message" in ann.get(f"{PAGE}lookup/", {"id": "<order>"}).text


def test_a_message_is_shown_with_its_deliveries(ann: Client, archived: str) -> None:
    page = ann.get(MESSAGE).text
    for reported in (
        "from the archive",
        "Retention has removed it",
        "REJECTED",
        "404 Not Found",
        ">gone</pre>",
    ):
        assert reported in page
    assert "{&quot;order&quot;: 42}" in page
    assert "priority" in page
    assert PayloadView.objects.get().message_id == ARCHIVED


def test_the_page_of_a_removed_message_leads_to_the_archive(ann: Client, archived: str) -> None:
    assert ann.get(f"/admin/delivery/message/{ARCHIVED}/change/").headers["Location"] == MESSAGE
    assert ann.get(f"/admin/delivery/message/{ARCHIVED + 1}/change/").status_code == 404


def test_a_message_that_is_also_in_the_database_says_so(ann: Client, archive: str) -> None:
    there = factories.message()
    write(archive, messages=[message(there.pk)])
    page = ann.get(f"{PAGE}message/{there.pk}/").text
    assert f"/admin/delivery/message/{there.pk}/change/" in page
    assert ann.get(f"/admin/delivery/message/{there.pk}/change/").status_code == 200


@pytest.mark.parametrize("id", ["1", "9" * 30])
def test_an_unarchived_message_is_not_found(ann: Client, archived: str, id: str) -> None:
    assert ann.get(f"{PAGE}message/{id}/").status_code == 404


def test_the_exact_bytes_are_downloaded_as_text(ann: Client, archived: str) -> None:
    answer = ann.get(f"{MESSAGE}raw/")
    assert answer.content == b'{"order": 42}'
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert "attachment" in answer.headers["Content-Disposition"]


def test_payloads_need_the_right_to_see_them(reader: Client, archived: str) -> None:
    User.objects.get(username="ray").user_permissions.remove(
        Permission.objects.get(codename="view_payload")
    )
    page = reader.get(MESSAGE).text
    assert "You may not see payloads" in page
    for hidden in ("order&quot;", ">high<", ">gone<"):
        assert hidden not in page
    assert reader.get(f"{MESSAGE}raw/").status_code == 403
    assert not PayloadView.objects.exists()


def test_a_look_up_needs_the_right_to_see_messages(db: None, archived: str) -> None:
    user = User.objects.create_user("sue", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_archivefile"))
    client = Client()
    client.force_login(user)
    assert "lookup" not in client.get(PAGE).text
    for address in (MESSAGE, f"{MESSAGE}raw/", f"{PAGE}lookup/"):
        assert client.get(address).status_code == 403


def test_messages_are_found_by_when_they_were_published(ann: Client, archive: str) -> None:
    write(
        archive, messages=[message(id, event_type="B" if id == 3 else "A") for id in (1, 2, 3, 4)]
    )
    span = {"since": f"{seconds(2):%Y-%m-%dT%H:%M:%S}", "until": f"{seconds(4):%Y-%m-%dT%H:%M:%S}"}
    found = ann.get(f"{PAGE}lookup/", span).context["found"]
    assert [delivery.id for delivery in found] == [2, 3]
    found = ann.get(f"{PAGE}lookup/", span | {"event_type": "B"}).context["found"]
    assert [delivery.id for delivery in found] == [3]
    nothing = ann.get(
        f"{PAGE}lookup/", {"since": "2020-01-01T00:00", "until": "2020-01-01T01:00"}
    ).text
    assert "No archived messages of this time" in nothing


def test_a_look_up_covers_at_most_a_day(ann: Client, archived: str) -> None:
    page = ann.get(f"{PAGE}lookup/", {"since": "2020-01-01T00:00", "until": "2020-01-09T01:00"})
    assert "create a report" in page.text
    assert page.context["found"] is None


def test_a_missing_file_is_reported_without_an_error(ann: Client, archived: str) -> None:
    row = ArchiveFile.objects.get(table="messages")
    Path(archived, row.path).unlink()
    assert ann.get(MESSAGE).status_code == 404
    at = f"{seconds(ARCHIVED):%Y-%m-%dT%H:%M}"
    until = f"{seconds(ARCHIVED + 3600):%Y-%m-%dT%H:%M}"
    assert "cannot be read" in ann.get(f"{PAGE}lookup/", {"since": at, "until": until}).text
