"""Marking a restored database: deliveries possibly sent since the back-up are IN_DOUBT.

`config/backup/README.md` has the rule and the reasons.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction

from delivery.database import queries
from delivery.lifecycle import journal
from delivery.models import (
    BulkVerb,
    EndpointHealth,
    JournalKind,
    Lane,
    Replay,
    ReplayState,
    Resubmission,
    ResubmissionState,
)
from delivery.models.delivery import MAX_MESSAGE_ID
from delivery.states import LaneState
from subscriptions.values.counts import counted

# The name of a sender's connection, see `delivery.senders.shards.session`.
SENDER = "inturn"
# More ids than the old installation can have used since, compared with the last day before.
IDS_AHEAD = 1_000_000
TIMES_THE_RATE = 100
# Their ids are in the archive, too.
ARCHIVED_SEQUENCES = (
    "delivery_archivechunk_id_seq",
    "delivery_archivefile_id_seq",
    "delivery_journalentry_id_seq",
    "delivery_pipelinerun_id_seq",
)


class SendersRunningError(Exception):
    """Inturn runs on the database; the message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRestore:
    in_doubt: int
    jobs: int
    next_message: int


def mark_restored(*, made_at: datetime, nothing_sent_since: bool, now: datetime) -> MarkedRestore:
    """Mark the database in one transaction; raises SendersRunningError if a sender is connected.

    After a crash, or by mistake, it may be repeated as long as Inturn was not started: deliveries
    IN_DOUBT stay so, and the ids jump once more.
    """
    with transaction.atomic():
        _require_no_sender()
        last_id, of_a_day = queries.row("newest_ids", {})
        if nothing_sent_since:
            return MarkedRestore(in_doubt=0, jobs=0, next_message=last_id + 1)
        in_doubt = _settle_in_doubt(made_at)
        _free_lanes(now=now)
        jobs = _cancel_jobs(now=now)
        next_message = _jump(last_id, of_a_day, now - made_at)
        text = (
            f"Restored from a back-up of {made_at:%Y-%m-%d %H:%M:%S %Z}: "
            f"{counted(in_doubt, 'open delivery')} became IN_DOUBT."
        )
        journal.record_entry(JournalKind.IN_DOUBT, text)
    return MarkedRestore(in_doubt=in_doubt, jobs=jobs, next_message=next_message)


def _require_no_sender() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND application_name = %s"
            ),
            [SENDER],
        )
        row = cursor.fetchone()
    if row is not None and row[0]:
        raise SendersRunningError(
            "senders are connected to this database: stop Inturn everywhere first"
        )


def _settle_in_doubt(made_at: datetime) -> int:
    reason = f"restored from a back-up of {made_at:%Y-%m-%d %H:%M %Z}: it may have been sent since"
    (count,) = queries.row("settle_restored", {"reason": reason})
    return int(count)


def _free_lanes(*, now: datetime) -> None:
    Lane.objects.update(
        state=LaneState.IDLE,
        since=now,
        reason="",
        delivery_id=None,
        failures=0,
        next_try_at=None,
        run_ids=[],
        run_attempts=[],
        run_is_concurrent=False,
        catch_up_rate=None,
        catch_up_to=None,
    )
    EndpointHealth.objects.all().delete()


def _cancel_jobs(*, now: datetime) -> int:
    """Cancel the jobs which would repeat deliveries sent since; return their number."""
    resubmissions = Resubmission.objects.filter(
        state=ResubmissionState.RUNNING, verb=BulkVerb.RESUBMIT
    )
    replays = Replay.objects.filter(state=ReplayState.RUNNING)
    return resubmissions.update(state=ResubmissionState.CANCELLED, ended_at=now) + replays.update(
        state=ReplayState.CANCELLED,
        ended_at=now,
        error="cancelled by a restore: it may have gone on since",
    )


def _jump(last_id: int, of_a_day: int, since: timedelta) -> int:
    """Move the sequences beyond all ids possibly in use elsewhere; return the next message's."""
    days = max(since.total_seconds(), 0) / 86_400
    ahead = IDS_AHEAD + round(TIMES_THE_RATE * of_a_day * days)
    next_id = min(last_id + ahead, MAX_MESSAGE_ID // 2)
    with connection.cursor() as cursor:
        # A number once drawn is never drawn again, whatever becomes of this transaction.
        cursor.execute("SELECT setval('delivery_message_id_seq', %s)", [next_id])
        for name in ARCHIVED_SEQUENCES:
            cursor.execute("SELECT setval(%s, nextval(%s) + %s)", [name, name, IDS_AHEAD])
    return next_id + 1
