"""A request for a report: parsed and validated before anything is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TypedDict

from delivery.history.job import StepRefusedError
from delivery.history.schemas import Table
from delivery.history.steps.report_columns import AS_TEXT, IN_FULL, REPORT
from delivery.history.steps.report_file import FORMATS
from subscriptions.filters.parse import parse_filter
from subscriptions.values.references import subscription_condition
from subscriptions.values.times import parse_time


class ReportError(StepRefusedError):
    """The report cannot be made as requested; the message says how to request it."""


class ReportOptions(TypedDict, total=False):
    """The settlements of a report: settled from `since` to before `until` (ISO, UTC).

    A missing key does not restrict. `subscription` is an id, a name or `subscriber/subscription`.
    `filter` is a filter on the message. `to` is the folder of the file.
    """

    since: str
    until: str
    subscriber: str
    subscription: str | int
    event_type: str
    status: str | Sequence[str]
    filter: str
    format: str
    with_bodies: bool
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """A parsed and validated request for a report."""

    since: datetime
    until: datetime
    equal: Mapping[str, str | int]
    statuses: tuple[str, ...]
    filter: str
    format: str
    with_bodies: bool

    @property
    def days(self) -> tuple[date, date]:
        return self.since.date(), (self.until - timedelta(microseconds=1)).date()

    @property
    def table(self) -> Table:
        """The columns written by Spark: bodies as bytes, whatever the file's format."""
        return replace(REPORT, columns=(*REPORT.columns, *IN_FULL)) if self.with_bodies else REPORT

    @property
    def columns(self) -> Table:
        """The columns of the file."""
        return (
            replace(REPORT, columns=(*REPORT.columns, *AS_TEXT)) if self._has_text else self.table
        )

    @property
    def _has_text(self) -> bool:
        return self.with_bodies and self.format == "csv"


def read_report_request(options: ReportOptions) -> ReportRequest:
    """Return the request; raises ReportError, and FilterError for the filter."""
    form = options.get("format", "csv")
    if form not in FORMATS:
        raise ReportError(f"A report is {' or '.join(FORMATS)}, not {form}.")
    since, until = parse_time(options["since"]), parse_time(options["until"])
    if since >= until:
        raise ReportError("since has to be before until.")
    if text := options.get("filter", "").strip():
        parse_filter(text)
    status = options.get("status") or ()
    return ReportRequest(
        since=since,
        until=until,
        equal=_equal(options),
        statuses=(status,) if isinstance(status, str) else tuple(status),
        filter=text,
        format=form,
        with_bodies=options.get("with_bodies", False),
    )


def _equal(options: ReportOptions) -> dict[str, str | int]:
    equal: dict[str, str | int] = {}
    if "subscriber" in options:
        equal["subscriber"] = options["subscriber"]
    if "event_type" in options:
        equal["event_type"] = options["event_type"]
    if "subscription" in options:
        equal |= subscription_condition(
            str(options["subscription"]),
            id="subscription_id",
            name="subscription",
            subscriber="subscriber",
        )
    return equal
