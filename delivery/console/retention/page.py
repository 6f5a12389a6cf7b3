"""The retention page: the retention periods and the running pass."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from delivery.maintenance import retention_rules
from delivery.maintenance.retention_rules import JOURNAL, UNMATCHED, RetentionRules
from delivery.models import RetentionRun, RetentionState
from subscriptions.values.counts import counted

_WORDS = {UNMATCHED: "messages without a subscription", JOURNAL: "the journal"}
_FOR_EVER = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPeriod:
    """The kinds of rows with the same retention period."""

    how_long: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPage:
    """The values of the page; `run` is the running pass.

    `kept_because` is why the last pass kept archived messages; empty if it did not.
    """

    kept: list[RetentionPeriod]
    waits_for_archive: bool
    archived_until: datetime | None
    run: RetentionRun | None
    kept_because: str


def read_retention_page() -> RetentionPage:
    rules = retention_rules.current_rules()
    return RetentionPage(
        kept=retention_periods(rules),
        waits_for_archive=rules.waits_for_archive,
        archived_until=rules.archived_until,
        run=RetentionRun.objects.filter(state=RetentionState.RUNNING).first(),
        kept_because=_kept_because(),
    )


def _kept_because() -> str:
    ended = RetentionRun.objects.filter(state=RetentionState.DONE).first()
    return "" if ended is None else ended.kept_because


def retention_periods(rules: RetentionRules) -> list[RetentionPeriod]:
    """Return the periods, shortest first, in the order of the settings."""
    # Sorting keeps the order of equal elements.
    ordered = sorted(rules.days.items(), key=_length)
    return [
        RetentionPeriod(
            how_long=_in_words(length), what=", ".join(_WORDS.get(name, name) for name, _ in group)
        )
        for length, group in groupby(ordered, key=_length)
    ]


def _length(item: tuple[str, int | None]) -> int:
    return item[1] or _FOR_EVER


def _in_words(days: int) -> str:
    if days == _FOR_EVER:
        return "forever"
    return counted(days, "day")
