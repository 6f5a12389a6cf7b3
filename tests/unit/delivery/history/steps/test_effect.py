"""The effect of a plan on the archive, on a real Spark: more and fewer deliveries, examples."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from delivery.configuration.archive_effect import (
    archive_effects,
    archive_lines,
    effect_options,
    request_effect,
)
from delivery.console.pipeline.effects import read_tried_changes
from delivery.history.job import StepJob
from delivery.history.schemas import MESSAGES
from delivery.history.steps.effect import EffectError, measure_effect
from delivery.history.transforms.effects import ConditionChange, effects
from delivery.pipeline.steps import call_step
from subscriptions.models import Subscriber
from tests.support import factories
from tests.unit.delivery.configuration.document.documents import document, plan
from tests.unit.delivery.history.archived import AT, frame, message, write

EVENT = "Test.Event"
CHEAP, CHEAPER = "$$->'Body'->'price' < 10", "$$->'Body'->'price' < 3"
PRICES = [message(id, body=b'{"price": %d}' % id) for id in range(12)]


def figures(
    spark: SparkSession, rows: list[dict[str, Any]], before: Any, after: Any
) -> tuple[int, int, int, int | None, int | None]:
    change = ConditionChange(event_type=EVENT, before=before, after=after)
    (row,) = effects(frame(spark, MESSAGES, rows), [change], event_type=EVENT).collect()
    return (
        row["asked"],
        row["more"],
        row["fewer"],
        row["example_of_more"],
        row["example_of_fewer"],
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("", CHEAP), ("", CHEAPER), (12, 0, 7, None, 9)),
        (("", CHEAP), ("", "$$->'Body'->'price' > 8"), (12, 2, 9, 11, 8)),
        (None, ("", CHEAP), (12, 10, 0, 9, None)),
        (("", ""), None, (12, 0, 12, None, 11)),
        (("", CHEAP), ("x", CHEAP), (12, 0, 10, None, 9)),
        (("", CHEAP), ("", "no filter"), (12, 0, 10, None, 9)),
        (("", CHEAP), ("", f" {CHEAP} "), (12, 0, 0, None, None)),
    ],
)
def test_deliveries_more_and_fewer_are_counted(
    spark: SparkSession, before: Any, after: Any, expected: tuple[Any, ...]
) -> None:
    assert figures(spark, PRICES, before, after) == expected


def test_a_header_filter_string_counts(spark: SparkSession) -> None:
    rows = [message(1, headers='{"filter-string": "a"}'), message(2)]
    assert figures(spark, rows, ("", ""), ("a", "")) == (2, 0, 1, None, 2)


def test_other_event_types_destinations_and_edited_copies_are_left_out(spark: SparkSession) -> None:
    rows = [
        message(1),
        message(2, event_type="B"),
        message(3, destination="crm"),
        message(4, edited_from=1),
    ]
    assert figures(spark, rows, None, ("", "")) == (1, 1, 0, 1, None)


def test_each_change_has_its_number(spark: SparkSession) -> None:
    changes = [
        ConditionChange(event_type=event_type, before=None, after=("", text))
        for event_type, text in ((EVENT, CHEAP), ("B", ""), (EVENT, CHEAPER))
    ]
    rows = frame(spark, MESSAGES, [*PRICES, message(20, event_type="B")])
    found = {
        row["number"]: row["more"] for row in effects(rows, changes, event_type=EVENT).collect()
    }
    assert found == {0: 10, 2: 3}


@pytest.mark.django_db(transaction=True)
class TestEffectOfAPlan:
    def planned(self, **fields: Any) -> Any:
        row = factories.subscription(
            "s",
            subscriber=factories.subscriber("abc"),
            event_type=factories.event_type(EVENT),
            filter=CHEAP,
        )
        return plan(document(subscriptions=[{"subscriber": "abc", "name": row.name, **fields}]))

    def test_is_reported_with_an_example(self, job: StepJob, tmp_path: Path) -> None:
        old = message(100, published_at=AT - timedelta(days=40), body=b'{"price": 5}')
        write(tmp_path, messages=[old, *PRICES])
        options = effect_options(self.planned(filter=CHEAPER), days=30, now=AT + timedelta(hours=1))
        result = measure_effect(job, **options)
        line, until = archive_lines(result, days=30)
        assert line == (
            "effect in 30 days: subscription abc/s: of 12 archived messages 7 "
            "deliveries fewer, for example of msg_9"
        )
        assert until.startswith("the archive is complete until 2026-11-22T10:00:11")

    def test_is_found_by_a_requested_run(self, job: StepJob, tmp_path: Path) -> None:
        write(tmp_path, messages=PRICES)
        now = AT + timedelta(hours=1)
        run = request_effect(self.planned(filter=CHEAPER), days=30, actor="ann", now=now)
        assert run is not None
        run.refresh_from_db()
        run.result = call_step(run.step, run.options, job=job)
        (effect,) = archive_effects(run.result)
        assert (effect.label, effect.asked, effect.fewer) == ("subscription abc/s", 12, 7)
        (shown,) = read_tried_changes(run)
        assert (shown.subscription, shown.asked, shown.fewer) == ("abc/s", 12, 7)
        assert (shown.before, shown.after) == (CHEAP, CHEAPER)
        assert shown.example_of_fewer == effect.example_of_fewer == 9

    def test_of_a_subscribers_status_is_reported(self, job: StepJob, tmp_path: Path) -> None:
        write(tmp_path, messages=PRICES)
        self.planned()
        Subscriber.objects.update(status="INACTIVE")
        planned = plan(document(subscribers=[{"name": "abc", "status": "ACTIVE"}]))
        (found,) = measure_effect(job, **effect_options(planned, days=1, now=AT))["effects"]
        assert (found["subscription"], found["more"], found["fewer"]) == (
            "subscription abc/s",
            10,
            0,
        )

    def test_of_what_decides_nothing_needs_no_spark(self, job: StepJob, tmp_path: Path) -> None:
        write(tmp_path, messages=PRICES)
        options = effect_options(self.planned(timeout_seconds=7), days=30, now=AT)
        assert options["changes"] == []
        assert measure_effect(job, **options)["effects"] == []

    def test_of_days_without_messages_is_nothing(self, job: StepJob, tmp_path: Path) -> None:
        write(tmp_path, messages=[message(1, event_type="Other")])
        options = effect_options(self.planned(filter=CHEAPER), days=30, now=AT)
        (found,) = measure_effect(job, **options)["effects"]
        assert (found["asked"], found["more"], found["fewer"]) == (0, 0, 0)

    def test_without_an_archive_is_refused(self, job: StepJob) -> None:
        options = effect_options(self.planned(filter=CHEAPER), days=30, now=AT)
        with pytest.raises(EffectError, match="run the export first"):
            measure_effect(job, **options)
