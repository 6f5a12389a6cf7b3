"""A report: a row for each requested settlement, in a file, whole or not at all."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from delivery.history.job import Stopped
from delivery.history.schemas import ATTEMPTS, DELIVERIES
from delivery.history.steps.report import (
    attempt_figures,
    requested_settlements,
    write_report,
)
from delivery.history.steps.report_columns import REPORT
from delivery.history.steps.report_file import cell
from delivery.history.steps.report_request import (
    ReportError,
    ReportOptions,
    read_report_request,
)
from delivery.models import PipelineRun, RunState, Step
from subscriptions.filters import FilterError
from tests.unit.delivery.history.archived import (
    AT,
    RecordedProgress,
    attempt,
    delivery,
    frame,
    job,
    message,
    seconds,
    write,
)

SECRET_ENDPOINT = "PATCH:https://receiver.example/Pa7hS3cr3tPartOfTheUrl?token=SECRET"
HOUR = {"since": AT.isoformat(), "until": (AT + timedelta(hours=1)).isoformat()}


def asked(**fields: Any) -> ReportOptions:
    return ReportOptions(**(HOUR | fields))  # type: ignore[typeddict-item]


def found(spark: SparkSession, rows: list[dict[str, Any]], **fields: Any) -> list[int]:
    kept = requested_settlements(
        frame(spark, DELIVERIES, rows), read_report_request(asked(**fields))
    )
    return sorted(row["id"] for row in kept.collect())


class TestReport:
    @pytest.fixture
    def rows(self) -> list[dict[str, Any]]:
        return [
            delivery(1),
            delivery(2, status="FAILED"),
            delivery(3, subscriber="crm", subscription="orders", subscription_id=7),
            delivery(4, event_type="Other"),
            delivery(5, settled_at=AT + timedelta(hours=2)),
            delivery(6, status="REJECTED", subscriber="crm"),
        ]

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({}, [1, 2, 3, 4, 6]),
            ({"until": seconds(3).isoformat()}, [1, 2]),
            ({"since": seconds(3).isoformat()}, [3, 4, 6]),
            ({"status": "FAILED"}, [2]),
            ({"status": ["FAILED", "REJECTED"]}, [2, 6]),
            ({"subscriber": "crm"}, [3, 6]),
            ({"subscription": "orders"}, [3]),
            ({"subscription": 7}, [3]),
            ({"subscription": "crm/orders"}, [3]),
            ({"subscription": "billing/orders"}, []),
            ({"event_type": "Other"}, [4]),
            ({"subscriber": "crm", "status": "DELIVERED"}, [3]),
        ],
    )
    def test_matches_the_request(
        self,
        spark: SparkSession,
        rows: list[dict[str, Any]],
        fields: dict[str, Any],
        expected: list[int],
    ) -> None:
        assert found(spark, rows, **fields) == expected

    def test_figures_are_of_the_attempts_of_that_settlement(self, spark: SparkSession) -> None:
        again = seconds(60)
        rows = [
            attempt(1, 1, outcome="SERVER_ERROR", status_code=500, error="500", duration_ms=9),
            attempt(
                1,
                2,
                outcome="CLIENT_ERROR",
                status_code=404,
                error="404",
                duration_ms=7,
                started_at=seconds(2),
            ),
            attempt(1, 3, settled_at=again, started_at=seconds(59)),
        ]
        first, second = (
            attempt_figures(frame(spark, ATTEMPTS, rows)).orderBy("settled_at").collect()
        )
        assert (first.recorded_attempts, first.last_outcome, first.last_status_code) == (
            2,
            "CLIENT_ERROR",
            404,
        )
        assert (first.last_error, first.last_duration_ms) == ("404", 7)
        assert (second.recorded_attempts, second.last_outcome, second.last_status_code) == (
            1,
            "SUCCESS",
            200,
        )

    @pytest.mark.parametrize(
        "fields",
        [{"format": "xls"}, {"until": AT.isoformat()}, {"since": seconds(9999).isoformat()}],
    )
    def test_with_contradictory_options_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ReportError):
            read_report_request(asked(**fields))

    def test_with_a_wrong_filter_is_refused_at_once(self) -> None:
        with pytest.raises(FilterError, match="column 7"):
            read_report_request(asked(filter="true ="))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("-2", "'-2"),
        (-2, "-2"),
        (None, ""),
        (AT, "2026-11-22T10:00:00Z"),
        ("a=b", "a=b"),
    ],
)
def test_no_cell_is_a_formula(value: object, expected: str) -> None:
    assert cell(value) == expected


@pytest.mark.django_db(transaction=True)
class TestTheFile:
    @pytest.fixture
    def archive(self, tmp_path: Path) -> Path:
        url = tmp_path / "archive"
        write(
            url,
            messages=[
                message(1, body='{"text": "a, \\"b\\"",\r\n"n": "ä"}'.encode()),
                message(2, body=b"\xff\x00", content_type="application/octet-stream"),
                message(3, body=b"=1+1", publisher=None),
            ],
            # In no order, and one of them settled twice.
            deliveries=[
                delivery(3, reason="=cmd", endpoint=SECRET_ENDPOINT),
                delivery(1, status="FAILED", attempts=2),
                delivery(2),
                delivery(
                    1,
                    settled_at=seconds(90),
                    attempts=3,
                    attempts_before=2,
                    redelivery="resubmitted",
                ),
            ],
            attempts=[
                attempt(1),
                attempt(1, 2),
                attempt(1, 3, settled_at=seconds(90)),
                attempt(2),
                attempt(3),
            ],
        )
        return url

    def made(self, archive: Path, spark: SparkSession, **fields: Any) -> dict[str, Any]:
        with job(archive, spark=spark) as given:
            return write_report(given, **asked(to=str(archive.parent / "reports"), **fields))

    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_shows_endpoints_without_their_secrets(
        self, archive: Path, spark: SparkSession, form: str
    ) -> None:
        path = self.made(archive, spark, format=form)["path"]
        read = duckdb.read_csv if form == "csv" else duckdb.read_parquet
        endpoints = {row[0] for row in read(path).project("endpoint").fetchall()}
        assert endpoints == {
            "https://receiver.example/hook",
            "PATCH:https://receiver.example/•••?•••",
        }

    def test_has_each_settlement_once_in_order(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark)
        path = Path(result["path"])
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == result["columns"] == REPORT.names
        assert [(row["delivery_id"], row["status"], row["recorded_attempts"]) for row in rows] == [
            ("1", "FAILED", "2"),
            ("2", "DELIVERED", "1"),
            ("3", "DELIVERED", "1"),
            ("1", "DELIVERED", "1"),
        ]
        assert (rows[2]["reason"], rows[2]["publisher"]) == ("'=cmd", "")
        assert rows[0]["settled_at"] == "2026-11-22T10:00:01.020000Z"
        assert (result["rows"], result["bytes"]) == (4, path.stat().st_size)

    def test_is_rfc_4180_with_unchanged_bodies(self, archive: Path, spark: SparkSession) -> None:
        path = Path(self.made(archive, spark, with_bodies=True)["path"])
        content = path.read_bytes()
        assert content.split(b"\r\n")[0].decode().split(",")[-3:] == [
            "headers",
            "body",
            "body_base64",
        ]
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        bodies = [(row["body"], row["body_base64"]) for row in rows[:3]]
        assert bodies == [('{"text": "a, \\"b\\"",\r\n"n": "ä"}', ""), ("", "/wA="), ("'=1+1", "")]

    def test_in_parquet_is_readable_by_other_readers(
        self, archive: Path, spark: SparkSession
    ) -> None:
        result = self.made(archive, spark, format="parquet", with_bodies=True)
        read = duckdb.read_parquet(result["path"]).order("settled_at")
        rows = read.project("delivery_id, status, body, last_status_code").fetchall()
        assert [row[:2] for row in rows] == [
            (1, "FAILED"),
            (2, "DELIVERED"),
            (3, "DELIVERED"),
            (1, "DELIVERED"),
        ]
        assert (rows[1][2], rows[1][3]) == (b"\xff\x00", 200)

    def test_contains_rows_that_match_the_filter(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark, filter="$$->'Body'->>'text' is not null")
        assert result["rows"] == 2

    @pytest.mark.slow
    def test_without_rows_contains_the_column_names(
        self, archive: Path, spark: SparkSession
    ) -> None:
        result = self.made(archive, spark, subscriber="nobody")
        assert (result["rows"], Path(result["path"]).read_text().count("\n")) == (0, 1)

    @pytest.mark.slow
    def test_ends_at_the_watermark_with_a_note(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark)
        assert result["until"] == (seconds(90) + timedelta(milliseconds=1)).isoformat()

    def test_is_the_only_file_left_and_readable_only_by_its_owner(
        self, archive: Path, spark: SparkSession
    ) -> None:
        path = Path(self.made(archive, spark)["path"])
        assert [file.name for file in path.parent.iterdir()] == [path.name]
        assert path.stat().st_mode & 0o777 == 0o600
        assert list((archive / ".reports").iterdir()) == []

    def test_that_is_stopped_leaves_no_file(self, archive: Path, spark: SparkSession) -> None:
        progress = RecordedProgress(stop_at="writing", error=Stopped())
        to = archive.parent / "reports"
        with job(archive, spark=spark, progress=progress) as given, pytest.raises(Stopped):
            write_report(given, **asked(to=str(to)))
        assert not to.exists() or list(to.iterdir()) == []
        assert list((archive / ".reports").iterdir()) == []

    @pytest.mark.slow
    def test_removes_leftovers_of_killed_runs(self, archive: Path, spark: SparkSession) -> None:
        runs = {
            state: PipelineRun.objects.create(pk=id, step=Step.REPORT, state=state, ended_at=ended)
            for id, state, ended in ((901, RunState.RUNNING, None), (902, RunState.FAILED, AT))
        }
        for run in runs.values():
            folder = archive / ".reports" / str(run.pk)
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").write_bytes(b"")
        self.made(archive, spark)
        left = {folder.name for folder in (archive / ".reports").iterdir()}
        assert left == {str(runs[RunState.RUNNING].pk)}

    def test_before_the_first_export_is_refused_with_the_next_step(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        with (
            job(tmp_path, spark=spark) as given,
            pytest.raises(ReportError, match="run the export first"),
        ):
            write_report(given, **asked(to=str(tmp_path)))
