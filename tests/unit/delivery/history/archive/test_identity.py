"""The archive's identity: each state of ledger and place, and kills between the two writes."""

import re
import shutil
from pathlib import Path
from uuid import UUID, uuid4

import orjson
import pytest
from django.utils import timezone

from delivery.history.archive import small_files
from delivery.history.archive.identity import (
    IDENTITY,
    WrongArchiveError,
    claim_archive,
    identity_at,
    require_archive,
)
from delivery.history.archive.lookup import Lookup
from delivery.history.archive.small_files import ArchiveError, NoAnswerFromStorageError
from delivery.history.job import StepJob, StepRefusedError, open_job
from delivery.history.spark.session import Spark
from delivery.history.steps.export import export_history
from delivery.models import ArchiveFile, ArchiveIdentity
from tests.support import ci_tools, factories
from tests.support.s3_server import BUCKET, s3_server
from tests.unit.delivery.history.archived import RecordedProgress, write
from tests.unit.delivery.history.exporting import AT_ONCE
from tests.unit.delivery.history.local_jobs import export_to, local_job
from tests.unit.delivery.history.verify_runs import sound_rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def uuid_there(place: Path) -> UUID:
    return UUID(orjson.loads((place / IDENTITY).read_bytes())["archive"])


def claimed(place: Path | str) -> None:
    with local_job(place) as job:
        claim_archive(job.database, job.archive.url)


def required(place: Path | str) -> None:
    with local_job(place) as job:
        require_archive(job.database, job.archive.url)


class TestClaim:
    def test_writes_one_uuid_to_ledger_and_place_once(self, place: Path) -> None:
        claimed(place)
        there = uuid_there(place)
        assert ArchiveIdentity.objects.get().uuid == there
        claimed(place)
        assert (uuid_there(place), ArchiveIdentity.objects.count()) == (there, 1)
        assert [file.name for file in place.iterdir()] == [IDENTITY]

    def test_continues_after_a_kill_between_ledger_and_file(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(small_files, "create_file", killed)
            with pytest.raises(KeyboardInterrupt):
                claimed(place)
        row = ArchiveIdentity.objects.get()
        claimed(place)
        assert uuid_there(place) == row.uuid

    def test_refuses_the_place_of_another_installation(self, place: Path) -> None:
        place.mkdir()
        (place / IDENTITY).write_bytes(orjson.dumps({"archive": str(uuid4())}))
        with pytest.raises(WrongArchiveError, match=r"belongs to another installation.*empty"):
            claimed(place)
        assert not ArchiveIdentity.objects.exists()

    def test_loses_against_an_installation_that_begins_there_at_once(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its file appears between our look and our writing."""
        create, other = small_files.create_file, uuid4()

        def after_the_other(url: str, path: str, content: bytes) -> None:
            create(url, path, orjson.dumps({"archive": str(other)}))
            create(url, path, content)

        monkeypatch.setattr(small_files, "create_file", after_the_other)
        with pytest.raises(WrongArchiveError, match=str(other)):
            claimed(place)
        assert uuid_there(place) == other

    def test_refuses_a_place_that_lost_the_archive(self, place: Path) -> None:
        factories.message(published_at=timezone.now())
        export_to(place)
        expected = uuid_there(place)
        shutil.rmtree(place)
        with pytest.raises(WrongArchiveError, match=rf"no archive is there.*{expected}.*mount"):
            claimed(place)
        assert not place.exists()

    @pytest.mark.parametrize("scheme", ["", "file://"])
    def test_is_the_same_by_path_and_url(self, place: Path, scheme: str) -> None:
        place.mkdir()
        claimed(f"{scheme}{place}")
        required(place)
        required(f"file://{place}")


@pytest.mark.skipif(bool(ci_tools.MISSING), reason=ci_tools.MISSING)
def test_a_store_keeps_it_as_a_folder_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        url = f"s3a://{BUCKET}/inturn"
        message = factories.message(published_at=timezone.now())
        export_to(url)
        assert identity_at(url) == ArchiveIdentity.objects.get().uuid
        required(url)
        with local_job(url) as job:
            assert list(Lookup(job.archive, job.database).messages([message.pk]))
            sizes = small_files.file_sizes(url, ["messages/none.parquet", IDENTITY])
        assert sizes["messages/none.parquet"] is None
        assert sizes[IDENTITY]
        with pytest.raises(WrongArchiveError, match="no archive is there"):
            required(f"s3a://{BUCKET}/elsewhere")
    # Its server is gone: Arrow itself would try for minutes.
    monkeypatch.setattr(small_files, "ANSWER_SECONDS", 0.5)
    with pytest.raises(NoAnswerFromStorageError, match=re.escape(url)):
        required(url)


class TestAdoption:
    """Of an archive whose ledger has no UUID."""

    def test_needs_all_files_with_their_sizes(self, place: Path) -> None:
        write(place, **sound_rows(range(1, 4)))
        file = place / ArchiveFile.objects.earliest("pk").path
        aside = file.rename(place / "aside")
        with pytest.raises(WrongArchiveError, match=r"1 of the archive's 3 files"):
            claimed(place)
        assert not (place / IDENTITY).exists()
        assert not ArchiveIdentity.objects.exists()
        aside.rename(file)
        claimed(place)
        assert ArchiveIdentity.objects.get().uuid == uuid_there(place)

    def test_continues_after_a_kill_between_file_and_ledger(self, place: Path) -> None:
        write(place, **sound_rows([1]))
        there = uuid4()
        (place / IDENTITY).write_bytes(orjson.dumps({"archive": str(there)}))
        claimed(place)
        assert ArchiveIdentity.objects.get().uuid == uuid_there(place) == there


class TestRequirement:
    def test_holds_before_the_first_export(self, place: Path) -> None:
        required(place)

    def test_names_both_archives(self, place: Path) -> None:
        claimed(place)
        expected, other = uuid_there(place), uuid4()
        (place / IDENTITY).write_bytes(orjson.dumps({"archive": str(other)}))
        with pytest.raises(WrongArchiveError) as refused:
            required(place)
        assert f"the archive there is {other}" in str(refused.value)
        assert f"this installation's archive is {expected}" in str(refused.value)
        assert str(place) in str(refused.value)

    def test_refuses_each_run_without_a_traceback(self, place: Path) -> None:
        factories.message(published_at=timezone.now())
        export_to(place)
        with local_job(place) as job:
            conninfo = job.conninfo
        with (
            pytest.raises(StepRefusedError, match=r"HISTORY_URL is .* no archive is there"),
            open_job(
                run_id=1,
                conninfo=conninfo,
                archive_url=str(place.with_name("another")),
                spark=Spark(),
                progress=RecordedProgress(),
            ),
        ):
            pytest.fail("the run began")

    def test_refuses_a_look_up(self, place: Path) -> None:
        message = factories.message(published_at=timezone.now())
        export_to(place)
        with local_job(place) as job:
            assert list(Lookup(job.archive, job.database).messages([message.pk]))
        (place / IDENTITY).write_bytes(orjson.dumps({"archive": str(uuid4())}))
        with local_job(place) as job, pytest.raises(ArchiveError, match="the archive there is"):
            list(Lookup(job.archive, job.database).messages([message.pk]))

    def test_is_looked_at_again_before_a_chunk_counts(self, place: Path) -> None:
        """The mount goes away while an export writes: nothing of it counts."""
        factories.message(published_at=timezone.now())
        claimed(place)
        with local_job(place) as job:
            unmount_when_comparing(job, place)
            with pytest.raises(WrongArchiveError):
                export_history(job, lag=AT_ONCE)
        assert not ArchiveFile.objects.exists()


def unmount_when_comparing(job: StepJob, place: Path) -> None:
    assert isinstance(job.progress, RecordedProgress)

    def put_another_there() -> None:
        (place / IDENTITY).write_bytes(orjson.dumps({"archive": str(uuid4())}))

    job.progress.when("comparing", put_another_there)
