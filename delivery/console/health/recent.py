"""The last day's health of subscriptions and subscribers: delivered, failed, durations.

It is read from counted rows, with a single statement for all rows of a page.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from delivery.database.queries import named_rows
from delivery.maintenance.durations import percentile

DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
# The step in the cell of a list, which has room for 24 bars.
HOUR = timedelta(hours=1)


@dataclass(slots=True)
class SettledCount:
    """The settled deliveries of the step from `at`."""

    at: datetime
    delivered: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentHealth:
    """The health of a day.

    `bars` are in order of time, up to the current quarter of an hour. `durations` counts deliveries
    by the steps of `delivery.maintenance.durations`.
    """

    bars: Sequence[SettledCount]
    durations: Counter[int] = field(default_factory=Counter)

    @property
    def delivered(self) -> int:
        return sum(bar.delivered for bar in self.bars)

    @property
    def failed(self) -> int:
        return sum(bar.failed for bar in self.bars)

    @property
    def settled(self) -> int:
        return self.delivered + self.failed

    @property
    def success_share(self) -> float | None:
        """The share of delivered among settled deliveries; None if none were settled."""
        return self.delivered / self.settled if self.settled else None

    @property
    def success(self) -> str:
        """The share as text, such as `99.9 %`, rounded down.

        Only a day without failures shows 100 %.
        """
        return share_in_words(self.delivered, self.settled)

    @property
    def p50_ms(self) -> int | None:
        return percentile(self.durations, 0.5)

    @property
    def p95_ms(self) -> int | None:
        return percentile(self.durations, 0.95)

    @property
    def highest(self) -> int:
        return max(bar.delivered + bar.failed for bar in self.bars)


def share_in_words(part: int, whole: int) -> str:
    """Return a share as text, such as `99.9 %`, rounded down; `–` if the whole is 0."""
    if not whole:
        return "–"
    tenths = part * 1000 // whole
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths / 10} %"


def health_of_subscriptions(
    ids: Collection[int], *, now: datetime, step: timedelta = HOUR
) -> dict[int, RecentHealth]:
    parameters = {"subscriptions": list(ids), "subscribers": []}
    return _health(ids, parameters, now=now, step=step)


def health_of_subscribers(
    ids: Collection[int], *, now: datetime, step: timedelta = HOUR
) -> dict[int, RecentHealth]:
    """Return the health of each subscriber, over all subscriptions."""
    parameters = {"subscriptions": [], "subscribers": list(ids)}
    return _health(ids, parameters, now=now, step=step)


def _health(
    ids: Collection[int], parameters: dict[str, Any], *, now: datetime, step: timedelta
) -> dict[int, RecentHealth]:
    until = now - timedelta(seconds=now.timestamp() % QUARTER.total_seconds()) + QUARTER
    since = until - DAY
    healths = {id: RecentHealth(bars=list(_bars(since, step))) for id in ids}
    for row in named_rows("traffic_of_subscriptions", parameters | {"since": since, "step": step}):
        _add(row, healths[row["owner_id"]], since=since, step=step)
    return healths


def _bars(since: datetime, step: timedelta) -> Iterator[SettledCount]:
    return (SettledCount(at=since + number * step) for number in range(DAY // step))


def _add(row: dict[str, Any], to: RecentHealth, *, since: datetime, step: timedelta) -> None:
    if row["at"] is None:
        # Step -1 counts deliveries without a known duration, such as those never attempted.
        if row["step"] >= 0:
            to.durations[row["step"]] += row["delivered"] + row["failed"]
        return
    place = (row["at"] - since) // step
    if place < len(to.bars):
        to.bars[place].delivered += row["delivered"]
        to.bars[place].failed += row["failed"]
