"""The charts of the overview: accepted, delivered and failed per step, from counted rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import orjson
from django.utils.safestring import SafeString, mark_safe

from delivery.database.queries import named_row, named_rows
from delivery.models import TrafficMark
from delivery.states import FAILURES, Status

# The usual delay of the counts while the chores run; see `delivery.maintenance.traffic`.
_STALE = timedelta(minutes=2)
# Rows of each index that a chart reads itself.
_UNCOUNTED_LIMIT = 20_000


class ChartSpan(StrEnum):
    """The length of a chart: an hour with a point a minute, or a day with one per 15 minutes."""

    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(hours=1) if self is ChartSpan.HOUR else timedelta(days=1)

    @property
    def step(self) -> timedelta:
        return timedelta(minutes=1) if self is ChartSpan.HOUR else timedelta(minutes=15)

    @property
    def per(self) -> str:
        return "minute" if self is ChartSpan.HOUR else "15 minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPoint:
    """The counts of the step from `at`."""

    at: datetime
    accepted: int = 0
    delivered: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with the points in order of time, up to `until`; the last step is not over.

    What the chores have not counted yet is counted for the chart, unless there is too much: then it
    ends with the last whole step that is counted. `is_stale`: the chores have not counted since
    `counted_until`, or never have.
    """

    span: ChartSpan
    points: Sequence[ChartPoint]
    until: datetime
    counted_until: datetime | None
    is_stale: bool

    @property
    def accepted(self) -> int:
        return sum(point.accepted for point in self.points)

    @property
    def delivered(self) -> int:
        return sum(point.delivered for point in self.points)

    @property
    def failed(self) -> int:
        return sum(point.failed for point in self.points)

    @property
    def rows(self) -> SafeString:
        """The rows of the table, the latest first.

        Made here and not by a template, which took 4 ms.
        """
        # Numbers and times only.
        return mark_safe("".join(_row(point) for point in reversed(self.points)))  # noqa: S308

    @property
    def values(self) -> str:
        """The values of the chart as JSON; times are in milliseconds, as in JavaScript."""
        named = {
            name: [getattr(point, name) for point in self.points]
            for name in ("accepted", "delivered", "failed")
        }
        at = [int(point.at.timestamp() * 1000) for point in self.points]
        is_running = self.until < self.points[-1].at + self.span.step
        return orjson.dumps({"at": at, "running": is_running, **named}).decode()


def chosen_span(value: str | None) -> ChartSpan:
    """Return the span named in the address; HOUR if it names none or an unknown chart."""
    return ChartSpan(value) if value in list(ChartSpan) else ChartSpan.HOUR


def read_chart(span: ChartSpan, *, now: datetime) -> Chart:
    """Load the chart up to now."""
    mark = TrafficMark.objects.values_list("until", flat=True).first()
    counted_until = min(mark or _floor(now, span.step), now)
    whole_until = _floor(counted_until, span.step)
    since = whole_until - span.length
    parameters = {"step": span.step, "since": since, "until": now}
    rows = {row.pop("begins_at"): row for row in named_rows("traffic_chart", parameters)}
    moments = [since + number * span.step for number in range(span.length // span.step)]
    points = [ChartPoint(at=at, **rows.get(at, {})) for at in moments]
    is_stale = mark is None or mark < now - _STALE
    rest = None if is_stale and mark else _uncounted(since=counted_until, until=now)
    if rest is not None:
        counted = ChartPoint(at=whole_until, **rows.get(whole_until, {}))
        points.append(
            replace(
                counted,
                accepted=counted.accepted + rest["accepted"],
                delivered=counted.delivered + rest["delivered"],
                failed=counted.failed + rest["failed"],
            )
        )
    return Chart(
        span=span,
        points=points,
        until=whole_until if rest is None else now,
        counted_until=mark,
        is_stale=is_stale,
    )


def _uncounted(*, since: datetime, until: datetime) -> dict[str, int] | None:
    """Count an interval that the chores have not counted; None if it has too many rows."""
    parameters = {
        "since": since,
        "until": until,
        "limit": _UNCOUNTED_LIMIT,
        "failures": [status for status in FAILURES if status != Status.IN_DOUBT],
    }
    row: dict[str, int] = named_row("uncounted_traffic", parameters)
    return None if max(row["accepted"], row["settled"]) > _UNCOUNTED_LIMIT else row


def _row(point: ChartPoint) -> str:
    return (
        f'<tr><th scope="row"><time datetime="{point.at.isoformat()}">{point.at:%H:%M}</time></th>'
        f'<td data-label="Accepted" class="inturn-figure">{point.accepted:,}</td>'
        f'<td data-label="Delivered" class="inturn-figure">{point.delivered:,}</td>'
        f'<td data-label="Failed" class="inturn-figure">{point.failed:,}</td></tr>'
    )


def _floor(moment: datetime, step: timedelta) -> datetime:
    return moment - timedelta(seconds=moment.timestamp() % step.total_seconds())
