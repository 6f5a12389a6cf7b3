"""Verify after a proof: it checks the new rows with earlier ones, or everything."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delivery.history.archive.proof import HistoryProof, last_proof
from delivery.history.checks import since_proof
from delivery.history.postgres.unarchived_rows import UNARCHIVED
from delivery.history.schemas import DELIVERIES
from delivery.models import ArchiveFile, Delivery, Status
from tests.support import factories
from tests.unit.delivery.history.archived import (
    RecordedProgress,
    Row,
    attempt,
    delivery,
    frame,
    job,
    message,
    seconds,
    write,
)
from tests.unit.delivery.history.verify_runs import (
    PROOF,
    PROVEN_UNTIL,
    check,
    found,
    sound_rows,
    verified,
)

# Later than the transactions of any test database.
LATER = 10**15
DOUBT = "checking everything"


def new_rows(ids: range) -> dict[str, Any]:
    """Return sound rows of messages that no transaction of the test's database accepted."""
    rows = sound_rows(ids)
    for row in (*rows["messages"], *rows["deliveries"]):
        row["transaction_id"] = row["seen_before"] = LATER + row["id"]
    return rows


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_run_checks_what_is_new_and_a_whole_one_everything(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, **sound_rows(range(1, 4)), until=PROVEN_UNTIL)
    first = verified(tmp_path, spark)
    assert (first["covers"], first["since"], first["deliveries"]) == ("the whole history", None, 3)
    write(tmp_path, **new_rows(range(200_001, 200_003)))
    # It does not read the proven rows, of which it sees the sizes.
    proven = {file: file.read_bytes() for file in tmp_path.glob("*/day=2026-11-22/*")}
    assert len(proven) == 3
    for file, content in proven.items():
        file.write_bytes(bytes(len(content)))
    second = verified(tmp_path, spark)
    assert (second["verdict"], second["deliveries"], second["attempts"]) == ("proven", 2, 2)
    assert second["since"] == first["until"] == PROVEN_UNTIL.isoformat()
    assert "the new rows since 2026-11-24 17:33:20 UTC" in second["covers"]
    for file, content in proven.items():
        file.write_bytes(content)
    whole = verified(tmp_path, spark, whole=True)
    assert (whole["covers"], whole["deliveries"]) == ("the whole history", 5)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_delivery_that_went_missing_since_the_proof_is_found(
    tmp_path: Path, spark: SparkSession
) -> None:
    accepted: Row = {"transaction_id": 5, "seen_before": 5, "published_at": seconds(0), "owed": 1}
    missing = factories.delivery(message=factories.message(**accepted))
    write(tmp_path, messages=[message(missing.message_id, **accepted)], until=PROVEN_UNTIL)
    assert verified(tmp_path, spark)["verdict"] == "proven"
    missing.delete()
    write(tmp_path, **new_rows(range(200_001, 200_002)))
    reported = RecordedProgress()
    result = verified(tmp_path, spark, reported)
    assert found() == [("OWED", missing.message_id, None, None)]
    assert result["verdict"] == "broken here"
    assert "the whole history, because the deliveries that were not archived" in result["covers"]
    assert DOUBT in "\n".join(reported.texts)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_earlier_rows_of_the_same_message_or_lane_are_compared_with_the_new_ones(
    tmp_path: Path, spark: SparkSession
) -> None:
    """While 1 was in flight, 2 overtook it; and 3's group takes it a second time."""
    before = sound_rows(range(2, 4))
    before["messages"] += [message(1)]
    before["messages"][1]["owed"] = 2
    before["deliveries"][1] |= {"queue_group": 0, "kind": "QUEUE"}
    late = [
        delivery(1 << 20, message_id=1),
        delivery(3 << 20, message_id=3, queue_group=0, kind="QUEUE"),
    ]
    # Of early transactions, which the snapshot of the proof shows.
    for row in (*before["messages"], *before["deliveries"], *late):
        row["transaction_id"] = row["seen_before"] = 10 + row.get("message_id", row["id"])
    open_ones = [_open(row, owed=owed) for row, owed in zip(late, (1, 2), strict=True)]
    write(tmp_path, **before, until=PROVEN_UNTIL)
    assert verified(tmp_path, spark)["verdict"] == "proven"
    for open_one in open_ones:
        open_one.delete()
    settled: Row = {"settled_at": PROVEN_UNTIL + timedelta(seconds=1)}
    write(
        tmp_path,
        deliveries=[row | settled for row in late],
        attempts=[
            attempt(late[0]["id"], message_id=1, started_at=seconds(2.5), **settled),
            attempt(late[1]["id"], message_id=3, **settled),
        ],
    )
    reported = RecordedProgress()
    verified(tmp_path, spark, reported)
    assert found() == [("GROUP", 3, 3, 3 << 20), ("ORDER", 2, 2, 1 << 20)]
    # Found among the new rows, and then in the whole history.
    assert reported.texts.count("checking suspected violations of order") == 2
    assert last_proof_of(tmp_path, spark) is None


def _open(row: Row, *, owed: int) -> Delivery:
    """Create in PostgreSQL, IN_FLIGHT, the deliveries that the archive gets later."""
    accepted = {name: row[name] for name in ("transaction_id", "seen_before", "published_at")}
    accepted |= {"id": row["message_id"], "owed": owed}
    return factories.delivery(
        Status.IN_FLIGHT,
        pk=row["id"],
        message=factories.message(**accepted),
        queue_group=row["queue_group"],
    )


def last_proof_of(url: Path, spark: SparkSession) -> HistoryProof | None:
    with job(url, spark=spark) as given:
        return last_proof(given.database)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_rows_of_the_day_of_the_proof_that_went_missing_are_found(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, **sound_rows(range(1, 4)))
    assert verified(tmp_path, spark)["verdict"] == "proven"
    ArchiveFile.objects.filter(table="deliveries").delete()
    write(tmp_path, **new_rows(range(200_001, 200_003)))
    result = verified(tmp_path, spark)
    assert result["covers"].startswith("the whole history, because the archive's end or number")
    assert [check(result, kind)["broken"] for kind in ("OWED", "STRAY")] == [3, 3]
    assert check(result, "FILES")["broken"]


def test_a_message_is_read_again_as_a_whole_and_a_lane_since_it_was_published(
    spark: SparkSession,
) -> None:
    rows = [
        delivery(1),
        delivery(2),
        delivery(3, subscriber_id=2),
        delivery(4, subscriber_id=2, processing="CONCURRENT"),
        delivery(5, subscriber_id=3),
        delivery(6, replay_id=1),
    ]
    new = [
        # Of 1's message, but not tried for the first time: its lane does not matter.
        delivery(10, message_id=1, subscriber_id=3, settled_before=1),
        # It could have been overtaken by 3.
        delivery(20, published_at=seconds(2.5), subscriber_id=2),
        delivery(200_001),
    ]
    touched = since_proof.touched_rows(
        frame(spark, DELIVERIES, new),
        spark.createDataFrame([], UNARCHIVED.spark),
        until=PROVEN_UNTIL,
    )
    again = since_proof.rows_read_again(
        frame(spark, DELIVERIES, rows), touched, until=PROVEN_UNTIL
    ).cache()
    assert {(row["id"], row["is_judged"]) for row in again.collect()} == {(1, True), (3, False)}
    known = spark.createDataFrame([(1, 1), (3, 3), (20, 20), (7, None)], "id INT, message_id INT")
    judged = since_proof.judged_deliveries(known, again)
    assert {row["id"] for row in judged.collect()} == {1, 20, 7}


def test_the_deliveries_without_a_row_in_the_archive_are_known_again(spark: SparkSession) -> None:
    """The snapshot shows transactions 1 and 21; not 22, which was running, and none from 30 on."""
    until = int(PROVEN_UNTIL.timestamp()) * 10**6
    columns = "id INT, transaction_id INT, in_archive INT, first_settled LONG, settlements INT"
    columns += ", replay_id INT"
    rows = [
        (1, 1, 0, until, 1, None),
        (2, 21, 0, until + 1, 1, None),
        (3, 22, 1, until, 1, None),
        (4, 30, 1, until, 1, None),
        (5, 1, 1, until - 1, 2, None),
        (6, 1, 1, until, 1, 7),
        (7, None, 1, until, 1, None),
    ]
    known = spark.createDataFrame(rows, columns)
    row = known.agg(
        since_proof.never_archived().alias("then"), since_proof.left_by(PROOF).alias("now")
    ).first()
    assert row is not None
    assert row["then"] == row["now"]
    assert row["now"]["deliveries"] == 2
