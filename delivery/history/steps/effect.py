"""Effect: the archived messages concerned by changed conditions of subscriptions.

It only reads. The result has the number of deliveries more and fewer of each change, with an
example; see `delivery.history.transforms.effects`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from delivery.history.archive import ledger
from delivery.history.archive.losses import require_files
from delivery.history.job import StepJob, StepRefusedError
from delivery.history.schemas import MESSAGES
from delivery.history.transforms.effects import ConditionChange, Matching, effects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class EffectError(StepRefusedError):
    """The effect cannot be measured; the message has the remedy."""


class EffectOptions(TypedDict):
    """The messages published from `since` (ISO) on, as far as they are archived.

    Each of `changes` has `subscription`, a text for people, `event_type`, and `before` and `after`:
    a header filter string and a filter, or null if no message matches.
    """

    since: str
    changes: Sequence[Mapping[str, Any]]


def measure_effect(job: StepJob, **options: Unpack[EffectOptions]) -> dict[str, Any]:
    """Return `since`, `until` (the watermark), and `effects`, one for each change, in order."""
    since = datetime.fromisoformat(options["since"])
    until = ledger.archived_until(job.database)
    if until is None:
        raise EffectError(
            "Nothing is archived yet, and this reads the archive: run the export first."
        )
    period = {"since": since.isoformat(), "until": until.isoformat()}
    changes = [_change(change) for change in options["changes"]]
    if since >= until or not changes:
        return period | {"effects": []}
    last = (until - timedelta(microseconds=1)).date()
    files = ledger.files(job.database, MESSAGES.name, since=since.date(), until=last)
    job.progress.doing(f"looking through {sum(file.rows for file in files):,} messages")
    found = {row["number"]: row for row in _rows(job, files, changes, since)}
    return period | {
        "effects": [
            {"subscription": change["subscription"], **_figures(found[number])}
            for number, change in enumerate(options["changes"])
        ]
    }


def _rows(
    job: StepJob, files: Sequence[ledger.File], changes: Sequence[ConditionChange], since: datetime
) -> Iterator[dict[str, Any]]:
    from pyspark.sql.functions import col, lit

    require_files(job.archive, files)
    frame = job.read_files(MESSAGES, files)
    messages: DataFrame = frame.where(col("published_at") >= lit(since))
    event_types = sorted({change.event_type for change in changes})
    for number, event_type in enumerate(event_types, start=1):
        job.progress.doing(f"looking through the messages of {event_type}"[:200])
        yield from (
            row.asDict() for row in effects(messages, changes, event_type=event_type).collect()
        )
        job.progress.advance(number, len(event_types))


def _change(given: Mapping[str, Any]) -> ConditionChange:
    return ConditionChange(
        event_type=given["event_type"],
        before=_matching(given["before"]),
        after=_matching(given["after"]),
    )


def _matching(given: Sequence[str] | None) -> Matching | None:
    return None if given is None else (given[0], given[1])


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "number"}
