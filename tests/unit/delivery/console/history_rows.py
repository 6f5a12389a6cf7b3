"""Rows for the history's pages: hours, runs, findings, replays and files of the pipeline."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from delivery.models import (
    ArchiveChunk,
    Archived,
    ArchiveFile,
    ChunkState,
    Finding,
    HistoryHour,
    PipelineRun,
    PipelineSchedule,
    Replay,
    ReplayState,
    RunState,
    Step,
)
from subscriptions.models import Subscription
from tests.support import factories
from tests.unit.delivery.history import archived as archiving

# A message that no other test has.
ARCHIVED = 7_000_001
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
VERIFIED: dict[str, Any] = {
    "verdict": "broken here",
    "messages": 1_204_311,
    "deliveries": 3_612_900,
    "attempts": 3_700_001,
    "checks": [
        {
            "kind": "ORDER",
            "checked": 3_100_000,
            "explained": {"made INACTIVE meanwhile": 12},
            "broken": 1,
        },
        {"kind": "TWICE", "checked": 3_612_900, "explained": {}, "broken": 0},
    ],
}


def this_hour() -> datetime:
    return timezone.now().astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def hour(at: datetime, *, of: Subscription, **fields: Any) -> HistoryHour:
    """Create an hour, by default with ten delivered and one rejected."""
    counted = {
        "delivered": 10,
        "rejected": 1,
        "attempts": 12,
        "failed_attempts": 2,
        "retried": 1,
        "bytes": 5_000,
    }
    took = {"latency_p50": 40.0, "latency_p95": 200.0, "latency_p99": 900.0, "latency_max": 1_000.0}
    answered = {
        "response_p50": 12.0,
        "response_p95": 80.0,
        "response_p99": 300.0,
        "response_max": 310.0,
    }
    return HistoryHour.objects.create(
        hour=at,
        subscriber=of.subscriber.name,
        subscription_id=of.pk,
        subscription=of.name,
        event_type=of.event_type.name,
        **{"endpoint": of.endpoint} | counted | took | answered | fields,
    )


def run(step: Step = Step.EXPORT, state: RunState = RunState.DONE, **fields: Any) -> PipelineRun:
    """Create a run whose state implies its times."""
    now = timezone.now()
    if state != RunState.WAITING:
        fields.setdefault("started_at", now - timedelta(seconds=20))
    if state not in (RunState.WAITING, RunState.RUNNING):
        fields.setdefault("ended_at", now - timedelta(seconds=10))
    return PipelineRun.objects.create(step=step, state=state, **{"asked_by": "ann"} | fields)


def verified(**fields: Any) -> PipelineRun:
    """Create a run that found a broken order."""
    found = run(Step.VERIFY, result=VERIFIED, done=8_517_212, **fields)
    Finding.objects.create(
        run=found,
        kind="ORDER",
        text="Message msg_12 was published before msg_13, and first tried after it.",
        message_id=12,
        delivery_id=31,
        other_delivery_id=32,
    )
    return found


def replay(state: ReplayState = ReplayState.READY, **fields: Any) -> Replay:
    """Create a replay whose state implies its counts."""
    now = timezone.now()
    fields["subscription"] = fields.get("subscription") or factories.subscription()
    if state != ReplayState.SELECTING:
        preview = [{"event": "Order.Created", "day": "2026-11-20", "count": 40}]
        fields.setdefault(
            "preview", [*preview, {"event": "Order.Paid", "day": "2026-11-21", "count": 2}]
        )
        fields.setdefault("count", 42)
    if state == ReplayState.RUNNING:
        fields |= {"done": 21, "made": 20}
    if state in (ReplayState.DONE, ReplayState.CANCELLED, ReplayState.FAILED):
        fields.setdefault("ended_at", now)
    defaults = {
        "event_types": ["Order.Created", "Order.Paid"],
        "since": now - 3 * DAY,
        "until": now - DAY,
    }
    return Replay.objects.create(state=state, asked_by="ann", **defaults | fields)


def archive_file(table: str = "messages", **fields: Any) -> ArchiveFile:
    """Create a published file of the archive."""
    now = timezone.now()
    if "chunk" not in fields:
        fields["chunk"] = ArchiveChunk.objects.create(
            state=ChunkState.DONE, run_id=1, since=now - HOUR, until=now, ended_at=now
        )
    day = now.date()
    path = factories.unique(f"{table}/day={day}/1-") + ".parquet"
    held = {
        "day": day,
        "path": path,
        "staged": path,
        "rows": 100,
        "bytes": 40_000,
        "first_id": 1,
        "last_id": 9,
    }
    return ArchiveFile.objects.create(table=table, **held | fields)


def archived_message(archive: str) -> None:
    """Create a message in the archive alone, with its delivery."""
    excerpt: dict[str, Any] = {
        "outcome": "CLIENT_ERROR",
        "status_code": 404,
        "error": "404 Not Found",
        "excerpt": b"gone",
    }
    archiving.write(
        archive,
        messages=[
            archiving.message(ARCHIVED, body=b'{"order": 42}', headers='{"priority": "high"}')
        ],
        deliveries=[archiving.delivery(ARCHIVED, status="REJECTED", reason="404 Not Found")],
        attempts=[archiving.attempt(ARCHIVED, **excerpt)],
    )


def reported() -> PipelineRun:
    """Create a run that wrote a report, with its file."""
    folder = settings.ENVIRONMENT.home / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{factories.unique('report')}.csv"
    file.write_text("delivery,status\r\n1,DELIVERED\r\n")
    return run(
        Step.REPORT, options={"format": "csv"}, result={"path": str(file), "rows": 1}, done=1
    )


def archived(until: datetime | None = None) -> None:
    Archived.objects.update_or_create(pk=1, defaults={"until": until or timezone.now()})


def make_one_of_each() -> None:
    """Create one more row of each list of the history."""
    subscription = factories.subscription()
    hour(this_hour() - HOUR, of=subscription)
    verified()
    replay(subscription=subscription)
    archive_file()
    # Each step has one schedule.
    spare = next(
        (step for step in Step if not PipelineSchedule.objects.filter(step=step).exists()), None
    )
    if spare is not None:
        PipelineSchedule.objects.create(step=spare, every_minutes=60, is_on=False)
