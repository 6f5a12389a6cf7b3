"""The selection of a replay: a filter's matches in a period, each once, all or none."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delivery.history.job import Stopped
from delivery.history.schemas import MESSAGES
from delivery.history.steps.replay import ReplaySelection, matching_messages, select_messages
from delivery.models import PipelineRun, Replay, ReplayItem, ReplayState
from delivery.support.replays import replays as asking
from delivery.support.replays.replays import request_replay
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.history.archived import (
    AT,
    RecordedProgress,
    frame,
    job,
    message,
    seconds,
    write,
)

EVENT = "Test.Event"


def wanted(**fields: Any) -> ReplaySelection:
    fields.setdefault("event_types", (EVENT,))
    return ReplaySelection(
        since=fields.pop("since", AT), until=fields.pop("until", seconds(100)), **fields
    )


def selected(spark: SparkSession, rows: list[dict[str, Any]], **fields: Any) -> list[int]:
    found = matching_messages(frame(spark, MESSAGES, rows), wanted(**fields))
    return sorted(row["id"] for row in found.collect())


class TestSelectedMessage:
    def test_was_published_within_the_time_range(self, spark: SparkSession) -> None:
        rows = [message(id) for id in range(1, 7)]
        assert selected(spark, rows, since=seconds(2), until=seconds(5)) == [2, 3, 4]

    def test_has_one_of_the_event_types(self, spark: SparkSession) -> None:
        rows = [message(1), message(2, event_type="B"), message(3, event_type="C")]
        assert selected(spark, rows, event_types=(EVENT, "C")) == [1, 3]

    def test_matches_the_filter(self, spark: SparkSession) -> None:
        bodies = [b'{"n": 1}', b'{"n": 1.0}', b'{"n": 2}', b"no JSON", b"{}"]
        rows = [message(id, body=body) for id, body in enumerate(bodies, start=1)]
        assert selected(spark, rows, filter="$$->'Body'->'n' = 1") == [1, 2]

    def test_has_the_header_filter_string_exactly(self, spark: SparkSession) -> None:
        texts = ["a", "a ", "A", "ä\\u00e9"]
        rows = [
            message(id, headers=f'{{"filter-string": "{text}"}}')
            for id, text in enumerate(texts, start=1)
        ]
        rows.append(message(9, headers="{}"))
        assert selected(spark, rows, header_filter_string="a") == [1]
        assert selected(spark, rows, header_filter_string="äé") == [4]

    def test_matches_both_filter_and_header_string(self, spark: SparkSession) -> None:
        rows = [
            message(1, headers='{"filter-string": "a"}', body=b'{"n": 1}'),
            message(2, headers='{"filter-string": "a"}', body=b'{"n": 2}'),
            message(3, headers='{"filter-string": "b"}', body=b'{"n": 1}'),
        ]
        assert selected(spark, rows, header_filter_string="a", filter="$$->'Body'->'n' = 1") == [1]

    def test_had_no_other_destination(self, spark: SparkSession) -> None:
        names = ["", "crm", "crm/orders", "crm/other", "shop"]
        rows = [message(id, destination=name) for id, name in enumerate(names, start=1)]
        assert selected(spark, rows, destinations=("crm", "crm/orders")) == [1, 2, 3]

    def test_is_no_edited_copy(self, spark: SparkSession) -> None:
        assert selected(spark, [message(1), message(2, edited_from=1)]) == [1]

    def test_is_counted_by_event_type_and_day(self, spark: SparkSession) -> None:
        rows = [message(1), message(2), message(3, published_at=AT + timedelta(days=1))]
        found = matching_messages(
            frame(spark, MESSAGES, rows), wanted(until=AT + timedelta(days=2))
        )
        days = sorted(str(row["day"]) for row in found.collect())
        assert days == ["2026-11-22", "2026-11-22", "2026-11-23"]


@pytest.mark.django_db(transaction=True)
class TestSelecting:
    @pytest.fixture
    def subscription(self) -> Subscription:
        return factories.subscription(event_type=factories.event_type(EVENT))

    @pytest.fixture
    def asked(self, tmp_path: Path, subscription: Subscription) -> Replay:
        later = AT + timedelta(days=1)
        rows = [
            message(1),
            message(2),
            message(5, published_at=later),
            message(4, event_type="Other"),
        ]
        write(tmp_path, messages=rows)
        return request_replay(subscription, since=AT, actor="ann")

    def test_stores_the_items_with_their_properties(
        self, asked: Replay, tmp_path: Path, spark: SparkSession
    ) -> None:
        with job(tmp_path, spark=spark) as given:
            result = select_messages(given, replay_id=asked.pk)
        asked.refresh_from_db()
        assert (asked.state, asked.count) == (ReplayState.READY, 3)
        assert asked.preview == [
            {"event": EVENT, "day": "2026-11-22", "count": 2},
            {"event": EVENT, "day": "2026-11-23", "count": 1},
        ]
        assert (result["state"], result["count"], result["preview"]) == ("READY", 3, asked.preview)
        assert list(
            ReplayItem.objects.order_by("message_id").values_list("message_id", flat=True)
        ) == [
            1,
            2,
            5,
        ]

    def test_that_is_stopped_stores_nothing_and_is_repeated(
        self, asked: Replay, tmp_path: Path, spark: SparkSession
    ) -> None:
        progress = RecordedProgress(stop_at="keeping", error=Stopped())
        with job(tmp_path, spark=spark, progress=progress) as given, pytest.raises(Stopped):
            select_messages(given, replay_id=asked.pk)
        assert not ReplayItem.objects.exists()
        with job(tmp_path, spark=spark) as given:
            assert select_messages(given, replay_id=asked.pk)["count"] == 3

    def test_of_a_replay_cancelled_meanwhile_changes_nothing(
        self, asked: Replay, tmp_path: Path, spark: SparkSession
    ) -> None:
        class Cancelling(RecordedProgress):
            def doing(self, text: str) -> None:
                if "keeping" in text:
                    asking.cancel_replay(asked, actor="bob")

        with job(tmp_path, spark=spark, progress=Cancelling()) as given:
            assert select_messages(given, replay_id=asked.pk)["state"] == "CANCELLED"
            assert select_messages(given, replay_id=asked.pk)["state"] == "CANCELLED"
        assert not ReplayItem.objects.exists()

    def test_repeated_keeps_the_first_result(
        self, asked: Replay, tmp_path: Path, spark: SparkSession
    ) -> None:
        with job(tmp_path, spark=spark) as given:
            select_messages(given, replay_id=asked.pk)
            assert select_messages(given, replay_id=asked.pk)["state"] == "READY"
        assert ReplayItem.objects.count() == 3

    def test_of_an_empty_time_range_is_ready_without_messages(
        self, subscription: Subscription, tmp_path: Path, spark: SparkSession
    ) -> None:
        write(tmp_path, until=seconds(60))
        asked = request_replay(subscription, since=AT, actor="ann")
        with job(tmp_path, spark=spark) as given:
            assert select_messages(given, replay_id=asked.pk)["state"] == "READY"
        asked.refresh_from_db()
        assert (asked.count, asked.preview) == (0, [])

    def test_is_a_run_of_the_pipeline(self, asked: Replay) -> None:
        run = PipelineRun.objects.get()
        assert (run.step, run.options, run.asked_by) == ("REPLAY", {"replay": asked.pk}, "ann")
