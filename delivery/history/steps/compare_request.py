"""The request for a comparison with another broker's log, parsed and validated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict
from urllib.parse import urlsplit

from delivery.history.job import StepRefusedError
from delivery.history.steps.report_file import FORMATS
from delivery.history.transforms.their_log import KNOWN_STATUSES
from subscriptions.filters.parse import parse_path
from subscriptions.filters.tree import Path as ValuePath
from subscriptions.values.times import parse_time

# The columns read of a log, by their usual names.
COLUMNS = ("key", "status", "time", "subscription")


class ComparisonError(StepRefusedError):
    """The comparison cannot be made as requested; the message says how to correct the request."""


class ComparisonOptions(TypedDict, total=False):
    """A comparison of deliveries from `since` to before `until` (ISO, UTC).

    `theirs` is the log, `key` a path such as `$$->'Body'->>'id'`. `columns` has the log's names for
    COLUMNS, `statuses` the log's words for statuses. `subscription` is subscriber/subscription;
    without it and without a column, a key stands for all subscriptions. `event_types` are those of
    the compared subscriptions; keys of other messages are not looked for. `to` is the folder of the
    file.
    """

    theirs: str
    key: str
    columns: Mapping[str, str]
    statuses: Mapping[str, str]
    time_format: str
    subscription: str
    subscription_id: int
    event_types: Sequence[str]
    since: str
    until: str
    format: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """A parsed and validated request for a comparison."""

    theirs: str
    key: ValuePath
    columns: Mapping[str, str]
    statuses: Mapping[str, str]
    time_format: str
    subscription: str
    subscription_id: int | None
    event_types: Sequence[str] | None
    since: datetime | None
    until: datetime | None
    format: str
    to: str

    @property
    def address(self) -> str:
        """The log's address for Spark."""
        return self.theirs if urlsplit(self.theirs).scheme else f"file://{self.theirs}"


def read_comparison_request(options: ComparisonOptions) -> ComparisonRequest:
    """Return the request; raises ComparisonError, and FilterError for the key."""
    form = options.get("format", "csv")
    if form not in FORMATS:
        raise ComparisonError(f"The file is {' or '.join(FORMATS)}, not {form}.")
    since, until = _time(options.get("since")), _time(options.get("until"))
    if since is not None and until is not None and since >= until:
        raise ComparisonError("since has to be before until.")
    names = {status.upper(): status for status in KNOWN_STATUSES}
    statuses = dict(options.get("statuses", {}))
    for word, status in statuses.items():
        if status.upper() not in names:
            raise ComparisonError(
                f"{word}={status}: the status is one of {', '.join(KNOWN_STATUSES)}."
            )
    return ComparisonRequest(
        theirs=options["theirs"],
        key=parse_path(options["key"]),
        columns=options.get("columns", {}),
        statuses={word.strip().upper(): names[status.upper()] for word, status in statuses.items()},
        time_format=options.get("time_format", ""),
        subscription=options.get("subscription", ""),
        subscription_id=options.get("subscription_id"),
        event_types=options.get("event_types"),
        since=since,
        until=until,
        format=form,
        to=options.get("to", ""),
    )


def _time(text: str | None) -> datetime | None:
    return parse_time(text) if text else None
