"""The history's charts: deliveries, success, durations, failures by time and place, blocked time.

All figures come from the hours counted by the rollup. A percentile of a single hour is exact;
percentiles of several hours or subscriptions cannot be combined, so the chart shows the worst and
the page says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Max, Model

from delivery.console.health.recent import share_in_words
from delivery.console.history.range import HOUR, HistoryRange, HistorySpan
from delivery.database.queries import named_rows
from delivery.models import Archived, HistoryHour
from subscriptions.matching.typed_names import (
    UnknownNameError,
    names_to_suggest,
    subscription_ids,
)
from subscriptions.models import EventType, Subscriber, Subscription
from subscriptions.reach import reach_of_names
from subscriptions.values.times import duration

SHOWN = 10
SUGGESTED_NAMES = 200
PERCENTILES = tuple(
    f"{kind}_{place}" for kind in ("latency", "response") for place in ("p50", "p95", "p99")
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Colours of the heat map besides "none", from pale to strong.
SHADES = 5
_KEPT_ANSWERS = 64
_NAMED: dict[str, type[Model]] = {
    "subscriber": Subscriber,
    "event_type": EventType,
    "subscription": Subscription,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """The step from `at`; durations are of the worst hour and subscription, in ms."""

    at: datetime
    delivered: int
    failed: int
    percentiles: dict[str, int | None]

    @property
    def success(self) -> str:
        return share_in_words(self.delivered, self.delivered + self.failed)

    @property
    def success_percent(self) -> float | None:
        settled = self.delivered + self.failed
        return round(100 * self.delivered / settled, 3) if settled else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An hour of a weekday, in UTC.

    `shade` runs from 0 (no failures) to SHADES (the most failures of any hour).
    """

    hour: int
    failed: int
    shade: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A subscription with failures; the names are those of the newest hour."""

    subscription_id: int
    subscription: str
    subscriber: str
    endpoint: str
    delivered: int
    failed: int

    @property
    def success(self) -> str:
        return share_in_words(self.delivered, self.delivered + self.failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """The page of the history.

    `until` is the archive's watermark; None while nothing is archived, so there is nothing to
    count.
    """

    period: HistoryRange
    until: datetime | None
    has_any: bool
    points: Sequence[HistoryPoint]
    heat: Sequence[tuple[str, Sequence[Cell]]]
    failing: Sequence[Failing]
    blocked: Sequence[tuple[str, str]]
    totals: dict[str, int]
    subscriptions: int

    @property
    def is_exact(self) -> bool:
        """True if each point has the percentiles of one row, rather than the worst of many rows."""
        return self.period.step == HOUR and self.subscriptions == 1 and bool(self.period.event_type)

    @property
    def success(self) -> str:
        return share_in_words(
            self.totals["delivered"], self.totals["delivered"] + self.totals["failed"]
        )

    @property
    def retried(self) -> str:
        return share_in_words(
            self.totals["retried"], self.totals["delivered"] + self.totals["failed"]
        )

    @property
    def step_in_words(self) -> str:
        """The time of a point: `hour`, or `6 hours`."""
        hours = self.period.step // HOUR
        return {1: "hour", 6: "6 hours", 24: "day"}.get(hours, "week")

    @property
    def latest_first(self) -> Sequence[HistoryPoint]:
        return [point for point in reversed(self.points) if point.success_percent is not None]

    @property
    def values(self) -> str:
        """The values of the charts as JSON; times are in milliseconds, as in JavaScript."""
        drawn: dict[str, list[Any]] = {
            "at": [int(point.at.timestamp() * 1000) for point in self.points],
            "success": [point.success_percent for point in self.points],
            "delivered": [point.delivered for point in self.points],
            "failed": [point.failed for point in self.points],
        }
        for name in PERCENTILES:
            drawn[name] = [point.percentiles[name] for point in self.points]
        is_by_day = self.period.span is not HistorySpan.DAY
        return orjson.dumps(drawn | {"is_by_day": is_by_day}).decode()


def read_history_page(period: HistoryRange) -> HistoryPage:
    newest = HistoryHour.objects.aggregate(newest=Max("id"))["newest"]
    by_hour, by_subscription = _counted(period, newest)
    failing = sorted(
        (row for row in by_subscription if row["failed"]),
        key=lambda row: row["failed"],
        reverse=True,
    )
    return HistoryPage(
        period=period,
        until=Archived.objects.values_list("until", flat=True).first(),
        has_any=newest is not None,
        points=_points(by_hour, period),
        heat=_heat(by_hour),
        failing=_named(failing[:SHOWN]),
        blocked=_blocked(by_subscription),
        totals={
            name: sum(row[name] for row in by_hour)
            for name in ("delivered", "failed", "attempts", "retried", "bytes")
        },
        subscriptions=len(by_subscription),
    )


def suggestions(user: User | AnonymousUser) -> dict[str, list[str]]:
    """Return names to suggest in the form's fields, the first in alphabetical order."""
    return {
        name: names_to_suggest(model, SUGGESTED_NAMES, reach=reach_of_names(user, model))
        for name, model in _NAMED.items()
    }


@lru_cache(maxsize=_KEPT_ANSWERS)
def _counted(
    period: HistoryRange, _newest: int | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows by hour and the rows by subscription.

    The result is cached until the next rollup, which replaces rows and therefore raises the newest
    id: to add up a quarter of a year of two hundred subscriptions takes a quarter of a second.
    """
    rows = named_rows(
        "history_hours",
        {
            "since": period.since,
            "until": period.until,
            "subscriptions": _ids(period.subscription),
            "subscriber": period.subscriber,
            "event_type": period.event_type,
        },
    )
    by_hour = sorted((row for row in rows if row["hour"] is not None), key=lambda row: row["hour"])
    return by_hour, [row for row in rows if row["hour"] is None]


def _ids(subscription: str) -> list[int] | None:
    """Return the ids of the subscriptions of the name; None means all, [] none.

    A deleted subscription is found only by id.
    """
    if not subscription:
        return None
    try:
        return subscription_ids(subscription, reach=None)
    except UnknownNameError:
        return []


def mistake_in(period: HistoryRange, user: User | AnonymousUser) -> str:
    """Return the query's mistake, with the nearest name; empty if there is none."""
    reach = reach_of_names(user, Subscription)
    try:
        _ = period.subscription and subscription_ids(period.subscription, reach=reach)
    except UnknownNameError as error:
        return error.detail
    return ""


def _points(rows: Sequence[dict[str, Any]], period: HistoryRange) -> list[HistoryPoint]:
    begin = _first(period)
    steps: dict[datetime, list[dict[str, Any]]] = {
        begin + number * period.step: []
        for number in range(-(-(period.until - begin) // period.step))
    }
    for row in rows:
        steps[begin + (row["hour"] - begin) // period.step * period.step].append(row)
    return [_point(at, of_step) for at, of_step in steps.items()]


def _first(period: HistoryRange) -> datetime:
    """Return the start of the first step; steps of whole days start at midnight."""
    return period.since - timedelta(seconds=period.since.timestamp() % period.step.total_seconds())


def _point(at: datetime, rows: Sequence[dict[str, Any]]) -> HistoryPoint:
    return HistoryPoint(
        at=at,
        delivered=sum(row["delivered"] for row in rows),
        failed=sum(row["failed"] for row in rows),
        percentiles={
            name: max((round(row[name]) for row in rows if row[name] is not None), default=None)
            for name in PERCENTILES
        },
    )


def _heat(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[Cell]]]:
    failed = [[0] * 24 for _ in WEEKDAYS]
    for row in rows:
        failed[row["hour"].weekday()][row["hour"].hour] += row["failed"]
    most = max(map(max, failed))
    return [
        (
            day,
            [
                Cell(hour=hour, failed=count, shade=_shade(count, most))
                for hour, count in enumerate(counts)
            ],
        )
        for day, counts in zip(WEEKDAYS, failed, strict=True)
    ]


def _shade(count: int, most: int) -> int:
    return -(-count * SHADES // most) if count else 0


def _named(rows: Sequence[dict[str, Any]]) -> list[Failing]:
    ids = [row["subscription_id"] for row in rows]
    names = {row["subscription_id"]: row for row in named_rows("history_names", {"ids": ids})}
    return [
        Failing(delivered=row["delivered"], failed=row["failed"], **names[row["subscription_id"]])
        for row in rows
        if row["subscription_id"] in names
    ]


def _blocked(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the subscribers whose lanes were blocked longest, with the time."""
    seconds: dict[str, float] = {}
    for row in rows:
        if row["blocked_seconds"]:
            seconds[row["subscriber"]] = seconds.get(row["subscriber"], 0) + row["blocked_seconds"]
    longest = sorted(seconds.items(), key=lambda item: item[1], reverse=True)[:SHOWN]
    return [(subscriber, duration(timedelta(seconds=spent))) for subscriber, spent in longest]
