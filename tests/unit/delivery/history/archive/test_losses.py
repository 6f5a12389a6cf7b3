"""The losses of the archive: each missing or changed file, and rows that no file has."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delivery.history.archive import losses
from delivery.history.archive.ledger import files
from delivery.history.job import StepJob
from delivery.history.schemas import TABLES
from delivery.models import ArchiveFile, Finding
from tests.unit.delivery.history.archived import entry, write
from tests.unit.delivery.history.verify_runs import check, found, sound_rows, verified

pytestmark = pytest.mark.django_db(transaction=True)


def test_lost_and_changed_files_are_named_and_left_out(job: StepJob) -> None:
    write(job.archive.url, **sound_rows([1]), journal=[entry(1, "HELD")])
    ledger = {table.name: files(job.database, table.name) for table in TABLES}
    report = losses.look_at_folder(job.archive, job.database, ledger)
    assert (report.sound, report.damages, report.strangers) == (ledger, {}, [])
    (journal,), (message,) = ledger["journal"], ledger["messages"]
    Path(job.archive.path(journal.path)).unlink()
    with Path(job.archive.path(message.path)).open("ab") as file:
        file.write(b"1")
    report = losses.look_at_folder(job.archive, job.database, ledger)
    assert report.sound == ledger | {"journal": [], "messages": []}
    assert list(report.damages.values()) == [
        f"{message.path} of the archive has {message.bytes + 1:,} bytes instead of "
        f"{message.bytes:,}.",
        f"{journal.path} of the archive, with 1 rows, is not there.",
    ]


def test_rows_that_no_file_has_are_counted(job: StepJob) -> None:
    write(job.archive.url, **sound_rows([1]))
    ledger = {table.name: files(job.database, table.name) for table in TABLES}
    exported = {"messages": 1, "deliveries": 1, "attempts": 1}
    assert list(losses.lost_rows(ledger, exported)) == []
    assert list(losses.lost_rows(ledger, exported | {"journal": 2_000})) == [
        "2,000 rows of journal were exported, and the archive's files have 0."
    ]


@pytest.mark.slow
def test_a_history_without_a_file_of_the_journal_is_not_proven(
    tmp_path: Path, spark: SparkSession
) -> None:
    """No other row depends on the journal's rows, here."""
    write(tmp_path, **sound_rows([1]), journal=[entry(1, "HELD"), entry(2, "ACTIVATED")])
    assert verified(tmp_path, spark)["verdict"] == "proven"
    journal = ArchiveFile.objects.get(table="journal")
    Path(tmp_path, journal.path).unlink()
    result = verified(tmp_path, spark, whole=True)
    assert (result["verdict"], check(result, "FILES")["broken"]) == ("broken here", 1)
    assert found() == [("FILES", None, None, None)]
    assert journal.path in Finding.objects.get().text
    journal.delete()
    result = verified(tmp_path, spark)
    assert (result["verdict"], check(result, "FILES")["broken"]) == ("broken here", 1)
    assert "2 rows of journal were exported" in Finding.objects.latest("id").text
