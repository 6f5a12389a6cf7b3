"""Verify proves a sound history, and finds violations, on a real archive and PostgreSQL."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pyspark.sql import SparkSession

from delivery.models import Finding, JournalEntry, Status
from tests.support import factories
from tests.unit.delivery.history.archived import (
    RecordedProgress,
    Row,
    attempt,
    delivery,
    entry,
    message,
    seconds,
    write,
)
from tests.unit.delivery.history.verify_runs import check, found, sound_rows, verified

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_an_empty_installation_is_proven(tmp_path: Path, spark: SparkSession) -> None:
    result = verified(tmp_path, spark)
    assert (result["verdict"], result["deliveries"], result["until"]) == ("proven", 0, None)


def test_a_sound_history_is_proven(tmp_path: Path, spark: SparkSession) -> None:
    chunk = write(tmp_path, **sound_rows(range(1, 6)))
    result = verified(tmp_path, spark)
    assert found() == []
    assert {
        name: result[name] for name in ("verdict", "messages", "deliveries", "attempts", "until")
    } == {
        "verdict": "proven",
        "messages": 5,
        "deliveries": 5,
        "attempts": 5,
        "until": chunk.until.isoformat(),
    }
    assert {check["kind"]: check["checked"] for check in result["checks"]} == {
        "ORDER": 5,
        "TWICE": 5,
        "OWED": 5,
        "GROUP": 0,
        "GAPS": 5,
        "STRAY": 5,
        "FILES": 3,
    }


def test_each_kind_is_found_with_its_rows(tmp_path: Path, spark: SparkSession) -> None:
    rows = sound_rows(range(1, 11))
    # 2 was tried before 1.
    rows["attempts"][1]["started_at"] = seconds(0)
    # 3 was sent again after its success.
    rows["deliveries"][2]["attempts"] = 2
    rows["attempts"].append(attempt(3, 2))
    # 4 owed two.
    rows["messages"][3]["owed"] = 2
    # 5 and 50 are a group, and both took it.
    rows["deliveries"][4] |= {"queue_group": 0, "kind": "QUEUE"}
    rows["deliveries"].append(delivery(50, message_id=5, queue_group=0, kind="QUEUE", attempts=0))
    rows["messages"][4]["owed"] = 2
    # 6 counts an attempt that does not exist.
    rows["deliveries"][5]["attempts"] = 2
    # 7's attempt is there twice, 8's delivery is missing, 9's message is missing.
    rows["attempts"].append(attempt(7))
    rows["messages"][7]["owed"] = 0
    del rows["deliveries"][7], rows["messages"][8]
    write(tmp_path, **rows)
    result = verified(tmp_path, spark)
    assert found() == [
        ("GAPS", 6, 6, None),
        ("GROUP", 5, 5, 50),
        ("ORDER", 2, 2, 1),
        ("OWED", 4, 4, None),
        ("STRAY", 7, 7, None),
        ("STRAY", None, 8, None),
        ("STRAY", 9, 9, None),
        ("TWICE", 3, 3, None),
    ]
    assert result["verdict"] == "broken here"
    broken = {"ORDER": 1, "TWICE": 1, "OWED": 1, "GROUP": 1, "GAPS": 1, "STRAY": 3, "FILES": 0}
    assert {check["kind"]: check["broken"] for check in result["checks"]} == broken
    assert Finding.objects.get(kind="ORDER").text == (
        "Delivery 2 was first tried at 2026-11-22 10:00:00.000000 UTC, before delivery 1, "
        "published before it, which was first tried at 2026-11-22 10:00:01.010000 UTC."
    )
    assert (
        Finding.objects.get(kind="OWED").text
        == "msg_4 was accepted with 2 deliveries, and the history has 1."
    )


@pytest.mark.slow
def test_rows_twice_in_the_archive_are_found(tmp_path: Path, spark: SparkSession) -> None:
    rows = sound_rows(range(1, 4))
    write(tmp_path, **rows)
    write(tmp_path, messages=rows["messages"][:1], deliveries=rows["deliveries"][1:2])
    verified(tmp_path, spark)
    assert found() == [("STRAY", 1, 1, None), ("STRAY", 2, 2, None)]


@pytest.mark.slow
def test_unarchived_rows_count(tmp_path: Path, spark: SparkSession) -> None:
    throttled = factories.delivery()
    settled = factories.delivery(Status.DELIVERED)
    archived = [
        message(throttled.message_id, owed=1, published_at=seconds(0)),
        message(settled.message_id, owed=1, published_at=seconds(0)),
    ]
    write(tmp_path, messages=archived, until=timezone.now() - timedelta(hours=1))
    result = verified(tmp_path, spark)
    assert found() == []
    assert (result["messages"], result["deliveries"], result["attempts"]) == (2, 2, 1)


@pytest.mark.slow
def test_postgresql_overrides_the_archive_for_resubmitted_deliveries(
    tmp_path: Path, spark: SparkSession
) -> None:
    """PostgreSQL has all its attempts; those of the archive are not counted with them."""
    again = factories.delivery(Status.FAILED)
    about = {"message_id": again.message_id}
    write(
        tmp_path,
        messages=[message(again.message_id)],
        deliveries=[delivery(again.pk, status="FAILED", **about)],
        attempts=[attempt(again.pk, outcome="TIMEOUT", **about)],
    )
    again.status, again.settled_at = Status.PENDING, None
    again.redelivery, again.attempts_before = "resubmitted", 1
    again.save()
    result = verified(tmp_path, spark)
    assert found() == []
    assert (result["deliveries"], result["attempts"]) == (1, 1)


@pytest.mark.slow
def test_a_waiting_delivery_that_was_overtaken_is_found_unless_it_is_held(
    tmp_path: Path, spark: SparkSession
) -> None:
    accepted: Row = {"transaction_id": 5, "seen_before": 5, "published_at": seconds(0), "owed": 1}
    waiting = factories.delivery(message=factories.message(**accepted))
    of = {
        "subscriber_id": waiting.subscription.subscriber_id,
        "subscription_id": waiting.subscription_id + 1,
    }
    later = waiting.message_id + 1
    number = waiting.pk + 1
    write(
        tmp_path,
        messages=[message(later), message(waiting.message_id, **accepted)],
        deliveries=[delivery(number, message_id=later, **of)],
        attempts=[attempt(number, message_id=later)],
    )
    verified(tmp_path, spark)
    assert found() == [("GAPS", later, number, waiting.pk)]
    assert "waits still" in Finding.objects.get().text
    write(
        tmp_path,
        journal=[entry(1, "DEACTIVATED", at=seconds(0.5), subscription_id=waiting.subscription_id)],
    )
    result = verified(tmp_path, spark)
    assert check(result, "ORDER")["explained"]["held"] == 1
    assert result["verdict"] == "proven"


@pytest.mark.slow
def test_the_journal_since_the_watermark_explains_too(tmp_path: Path, spark: SparkSession) -> None:
    rows = sound_rows([1, 2])
    rows["deliveries"][1]["subscription_id"] = 2
    rows["attempts"][0]["started_at"] = seconds(9)
    rows["deliveries"][0]["settled_at"] = seconds(10)
    write(tmp_path, **rows, until=seconds(1))
    JournalEntry.objects.create(kind="DEACTIVATED", text="", subscription_id=1, at=seconds(1.5))
    assert verified(tmp_path, spark)["verdict"] == "proven"


@pytest.mark.slow
def test_a_second_run_writes_its_own_findings(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, messages=[message(1)])
    verified(tmp_path, spark)
    verified(tmp_path, spark)
    assert found() == [("OWED", 1, None, None)] * 2
    assert Finding.objects.values("run_id").distinct().count() == 2


@pytest.mark.slow
def test_no_more_than_a_thousand_findings_of_a_kind_are_written(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, messages=[message(id, published_at=seconds(0)) for id in range(1, 1_202)])
    result = verified(tmp_path, spark)
    assert check(result, "OWED")["broken"] == 1_201
    assert Finding.objects.count() == 1_000


@pytest.mark.slow
def test_times_near_midnight_are_of_one_history(tmp_path: Path, spark: SparkSession) -> None:
    rows = sound_rows(range(1, 3))
    rows["deliveries"][1]["settled_at"] += timedelta(days=1)
    write(tmp_path, **rows)
    assert verified(tmp_path, spark)["verdict"] == "proven"


@pytest.mark.slow
def test_the_snapshot_is_gone_before_the_archive_is_read(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large archive takes minutes, and vacuum would wait for the snapshot."""
    monkeypatch.setattr("delivery.history.postgres.unarchived_rows.FEW", 0)
    archive, elsewhere = tmp_path / "archive", tmp_path / "elsewhere"
    rows = sound_rows(range(1, 4))
    write(archive, **rows, until=timezone.now() - timedelta(hours=1))
    factories.delivery(id=50)
    JournalEntry.objects.create(kind="CANCELLED", text="")
    archive.rename(elsewhere)
    held: list[Any] = []

    def look_and_bring_the_archive() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                # Vacuum's workers have snapshots of their own.
                "SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND pid <> pg_backend_pid() "
                "AND (backend_xmin IS NOT NULL OR state LIKE 'idle in transaction%')"
            )
            held.append(cursor.fetchall())
        elsewhere.rename(archive)

    reported = RecordedProgress()
    reported.when("reading the archive", look_and_bring_the_archive)
    assert verified(archive, spark, reported)["deliveries"] == 4
    assert held == [[]]
