"""`history archive`: it shows which archive there is, and begins a new one after a loss."""

import shutil
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django import Settings

from delivery.history.archive.identity import IDENTITY
from delivery.history.archive.small_files import ArchiveError
from delivery.models import (
    ArchiveChunk,
    Archived,
    ArchiveFile,
    ArchiveIdentity,
    JournalEntry,
    JournalKind,
    Message,
)
from tests.support import factories
from tests.unit.delivery.history.exporting import visible
from tests.unit.delivery.history.local_jobs import export_to

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path: Path, settings: Settings) -> Path:
    """An archive of three messages, two of which are in no other place, and were measured."""
    place = tmp_path / "archive"
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, history_url=str(place))
    messages = [factories.message(published_at=timezone.now()) for _ in range(3)]
    export_to(place)
    Message.objects.filter(pk__in=[message.pk for message in messages[:2]]).delete()
    ArchiveChunk.objects.update(is_rolled_up=True)
    return place


def given_up(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    call_command("history", "archive", *options)
    return capsys.readouterr().out


def test_a_sound_archive_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = given_up(capsys)
    uuid = ArchiveIdentity.objects.get().uuid
    assert f"this installation's archive: {uuid}" in shown
    assert f"the archive there: {uuid}" in shown
    assert "give-up" not in shown


def test_a_missing_archive_is_shown_with_what_a_loss_means(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(place)
    with pytest.raises(CommandError, match="no archive is there"):
        given_up(capsys)
    shown = capsys.readouterr().out
    assert "Of its 3 messages, 2 are in no other place: they are lost" in shown
    assert f"history archive --give-up {ArchiveIdentity.objects.get().uuid}" in shown


def test_a_new_archive_begins_with_all_that_is_left(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(place)
    lost, until = ArchiveIdentity.objects.get(), Archived.objects.get().until
    with pytest.raises(ArchiveError):
        export_to(place)
    said = given_up(capsys, "--give-up", str(lost.uuid))
    assert "3 messages, of which 2 were in no other place" in said
    assert JournalEntry.objects.get(kind=JournalKind.REMOVED).text in said
    assert not ArchiveFile.objects.exists()
    assert not Archived.objects.exists()
    assert ArchiveIdentity.objects.get().measured_until == until
    export_to(place)
    new = ArchiveIdentity.objects.get()
    assert new.uuid not in (None, lost.uuid)
    assert str(new.uuid) in (place / IDENTITY).read_text()
    assert any(name.startswith("messages/") for name in visible(place))


def test_an_archive_that_is_there_is_not_given_up(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="is there, at"):
        given_up(capsys, "--give-up", str(ArchiveIdentity.objects.get().uuid))
    assert ArchiveFile.objects.exists()


def test_the_wrong_uuid_gives_nothing_up(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(place)
    for wrong in (str(uuid4()), "all"):
        with pytest.raises(CommandError):
            given_up(capsys, "--give-up", wrong)
    assert ArchiveFile.objects.exists()


def test_files_that_are_left_are_not_taken_for_those_of_a_new_archive(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / IDENTITY).unlink()
    with pytest.raises(CommandError, match="files are there"):
        given_up(capsys, "--give-up", str(ArchiveIdentity.objects.get().uuid))
