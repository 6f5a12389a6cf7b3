"""Another broker's log against six deliveries.

Some are only there, only here, in another order or with another status.
"""

import csv
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from delivery.history.steps.compare import compare_logs
from delivery.history.steps.compare_request import ComparisonError
from tests.unit.delivery.history.archived import (
    Row,
    attempt,
    delivery,
    job,
    message,
    seconds,
    write,
)

PUSHES = "subscriber1/subscription1"


def time(second: int) -> str:
    return seconds(second).isoformat()


@pytest.mark.django_db(transaction=True)
class TestTheComparison:
    @pytest.fixture
    def archive(self, tmp_path: Path) -> Path:
        """Messages a to f: b is not delivered, d and c change places, e failed, f is only here."""
        url = tmp_path / "archive"
        begun = {1: 1, 3: 9, 4: 8, 5: 10, 6: 11}
        write(
            url,
            until=seconds(60),
            messages=[
                message(id, body=b'{"id": "%s"}' % key.encode(), headers=f'{{"x-id": "{key}"}}')
                for id, key in enumerate("abcdef", start=1)
            ]
            + [message(7, body=b"no JSON")],
            deliveries=[delivery(id, status="FAILED" if id == 5 else "DELIVERED") for id in begun],
            attempts=[attempt(id, started_at=seconds(second)) for id, second in begun.items()],
        )
        return url

    def log(self, archive: Path, *rows: str, header: str = "key,status,time") -> str:
        file = archive.parent / "log.csv"
        file.write_text("\n".join([header, *rows]) + "\n")
        return str(file)

    def theirs(self, archive: Path) -> str:
        rows = [f"{key},200,{time(second)}" for second, key in enumerate("abcde", start=1)]
        return self.log(
            archive, *rows, f"x,200,{time(9)}", f"later,200,{time(99)}", f",200,{time(1)}"
        )

    def made(self, archive: Path, spark: SparkSession, **asked: Any) -> Row:
        options = {"key": "$$->'Body'->>'id'"} | asked
        if "theirs" not in options:
            options["theirs"] = self.theirs(archive)
        with job(archive, spark=spark) as given:
            return compare_logs(given, **options)

    def test_counts_each_result(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark)
        examples = result.pop("examples")
        assert result == {
            "until": seconds(60).isoformat(),
            "same": 2,
            "only_there": 2,
            "only_here": 1,
            "other_status": 1,
            "other_order": 1,
            "log_rows_without_key": 1,
            "messages_without_key": 1,
        }
        assert examples == [
            {
                "result": "ONLY_THERE",
                "key": "b",
                "there": "DELIVERED 2026-11-22 10:00:02.000 UTC",
                "here": "msg_2 has no settled delivery",
            },
            {
                "result": "ONLY_THERE",
                "key": "x",
                "there": "DELIVERED 2026-11-22 10:00:09.000 UTC",
                "here": "no archived message has this key",
            },
            {
                "result": "ONLY_HERE",
                "key": "f",
                "there": "nothing",
                "here": "DELIVERED 2026-11-22 10:00:11.000 UTC",
            },
            {
                "result": "OTHER_STATUS",
                "key": "e",
                "there": "DELIVERED 2026-11-22 10:00:05.000 UTC",
                "here": "FAILED 2026-11-22 10:00:10.000 UTC",
            },
            {
                "result": "OTHER_ORDER",
                "key": "d",
                "there": "DELIVERED 2026-11-22 10:00:04.000 UTC",
                "here": "DELIVERED 2026-11-22 10:00:08.000 UTC",
                "overtook": "c",
            },
        ]

    @pytest.mark.parametrize(
        ("event_types", "here", "without_key"),
        [
            (["Test.Event"], "msg_2 has no settled delivery", 1),
            (["Other.Event"], "no archived message has this key", 0),
        ],
    )
    def test_reads_keys_of_the_event_types_of_compared_subscriptions(
        self,
        archive: Path,
        spark: SparkSession,
        event_types: list[str],
        here: str,
        without_key: int,
    ) -> None:
        log = self.log(archive, f"b,200,{time(2)}")
        result = self.made(archive, spark, theirs=log, event_types=event_types)
        (example,) = [
            example for example in result["examples"] if example["result"] == "ONLY_THERE"
        ]
        assert (example["here"], result["messages_without_key"]) == (here, without_key)

    @pytest.mark.slow
    def test_takes_the_key_from_a_header(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark, key="$$->'Header'->>'X-Id'")
        assert (result["same"], result["only_there"], result["messages_without_key"]) == (2, 2, 1)

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_writes_all_rows(self, archive: Path, spark: SparkSession, form: str) -> None:
        result = self.made(archive, spark, format=form, to=str(archive.parent / "out"))
        path = Path(result["path"])
        read = duckdb.read_csv(str(path)) if form == "csv" else duckdb.read_parquet(str(path))
        assert read.project("key, result, message_id").order("key").fetchall() == [
            ("a", "SAME", 1),
            ("b", "ONLY_THERE", 2),
            ("c", "SAME", 3),
            ("d", "OTHER_ORDER", 4),
            ("e", "OTHER_STATUS", 5),
            ("f", "ONLY_HERE", 6),
            ("x", "ONLY_THERE", None),
        ]
        assert [file.name for file in path.parent.iterdir()] == [path.name]

    @pytest.mark.slow
    def test_of_an_interval_has_its_rows_alone(self, archive: Path, spark: SparkSession) -> None:
        result = self.made(archive, spark, since=time(3), until=time(5))
        counts = [
            result[name]
            for name in ("same", "only_there", "only_here", "other_status", "other_order")
        ]
        assert counts == [1, 0, 0, 0, 1]

    @pytest.mark.slow
    def test_of_one_subscription_reads_its_rows_of_the_log(
        self, archive: Path, spark: SparkSession
    ) -> None:
        rows = [f"a,200,{time(1)},{PUSHES}", f"f,200,{time(2)},other/one"]
        log = self.log(archive, *rows, header="key,status,time,subscription")
        result = self.made(archive, spark, theirs=log, subscription=PUSHES, subscription_id=1)
        assert (result["same"], result["only_there"], result["only_here"]) == (1, 0, 4)
        assert {row["subscription"] for row in result["examples"]} == {PUSHES}
        result = self.made(archive, spark, theirs=log)
        assert (result["same"], result["only_there"], result["only_here"]) == (1, 1, 4)

    @pytest.mark.slow
    def test_reads_columns_of_other_names(self, archive: Path, spark: SparkSession) -> None:
        log = self.log(archive, '"a",done,"with, comma"', header="msg.id,State,note")
        columns = {"key": "msg.id", "status": "State"}
        result = self.made(
            archive, spark, theirs=log, columns=columns, statuses={"done": "delivered"}
        )
        assert (result["same"], result["only_there"]) == (1, 0)

    @pytest.mark.parametrize(
        ("header", "row", "asked", "error"),
        [
            ("id,status", "a,200", {}, "no column key; it has id, status"),
            ("key", "a", {"columns": {"time": "at"}}, "no column at"),
            (
                "key,status",
                "a,sent",
                {},
                "does not know: sent. Translate each, for example --status sent=DELIVERED",
            ),
            ("key,time", "a,yesterday", {}, "not ISO 8601.*: yesterday"),
        ],
    )
    def test_of_an_unreadable_log_is_refused_with_the_correction(
        self,
        archive: Path,
        spark: SparkSession,
        header: str,
        row: str,
        asked: dict[str, Any],
        error: str,
    ) -> None:
        with pytest.raises(ComparisonError, match=error):
            self.made(archive, spark, theirs=self.log(archive, row, header=header), **asked)

    @pytest.mark.slow
    def test_of_a_shadow_match_has_its_key_and_order(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        archive = tmp_path / "archive"
        write(
            archive,
            until=seconds(60),
            messages=[message(id, body=b'{"id": "%d"}' % id) for id in (1, 2, 3)],
            deliveries=[delivery(id, status="SHADOW", attempts=0) for id in (1, 2, 3)],
        )
        log = self.log(archive, f"1,404,{time(1)}", f"3,200,{time(2)}", f"2,200,{time(3)}")
        result = self.made(archive, spark, theirs=log)
        counts = [
            result[name]
            for name in ("same", "only_there", "only_here", "other_status", "other_order")
        ]
        assert counts == [2, 0, 0, 0, 1]

    def test_before_the_first_export_is_refused_with_the_next_step(
        self, tmp_path: Path, spark: SparkSession
    ) -> None:
        with pytest.raises(ComparisonError, match="run `history export` first"):
            self.made(tmp_path / "archive", spark, theirs="/log.csv")


def test_columns_of_the_csv_are_those_of_the_table(tmp_path: Path) -> None:
    from delivery.history.steps.report_file import row_writer
    from delivery.history.transforms.comparison import COMPARISON

    with row_writer(tmp_path / "rows.csv", COMPARISON, form="csv"):
        pass
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert next(csv.reader(file)) == COMPARISON.names
