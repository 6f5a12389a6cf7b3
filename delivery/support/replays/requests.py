"""Requests for replays, validated: refused with advice, or completed from the subscription."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from delivery.models import Archived
from delivery.support.bulk_jobs import FASTEST_RATE, SLOWEST_RATE
from subscriptions.filters import FilterError, parse_filter
from subscriptions.models import EventType, Kind, Subscription
from subscriptions.values.names import UNSUBSCRIBABLE


class ReplayRequest(TypedDict, total=False):
    """Messages published from `since` to before `until`; no `until` means all archived messages.

    `rate` is deliveries per second. None or a missing key means the subscription's value; an empty
    text means no such condition.
    """

    since: datetime
    until: datetime | None
    filter: str | None
    header_filter_string: str | None
    event_types: Sequence[str] | None
    rate: float | None


class ReplayRefusedError(Exception):
    """The replay was not stored; the message gives the reason and the remedy.

    `field` is the field at fault; for a filter, `line` and `column` give the place.
    """

    def __init__(
        self, detail: str, *, field: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.line = line
        self.column = column


def checked_request(subscription: Subscription, request: ReplayRequest) -> dict[str, Any]:
    """Return the fields of the replay; raises ReplayRefusedError."""
    if subscription.event_type.kind == Kind.SYNC:
        raise ReplayRefusedError(
            (
                f"{subscription} is SYNC: its publisher waits for the answer, so a replay has no "
                "recipient. Replay to a subscription of a TOPIC or QUEUE event type."
            ),
            field="subscription",
        )
    since, until = _times(request)
    header_filter_string = request.get("header_filter_string")
    return {
        "since": since,
        "until": until,
        "filter": _filter(request.get("filter"), of=subscription),
        "header_filter_string": subscription.header_filter_string
        if header_filter_string is None
        else header_filter_string,
        "event_types": _event_types(request.get("event_types"), of=subscription),
        "rate": _rate(request.get("rate")),
    }


def _times(request: ReplayRequest) -> tuple[datetime, datetime]:
    archived = Archived.objects.values_list("until", flat=True).first()
    if archived is None:
        raise ReplayRefusedError(
            "Nothing is archived yet, and a replay reads the archive. Run the export first: "
            "`manage.py history export`, or Run now in the console.",
            field="until",
        )
    until = request.get("until") or archived
    if until > archived:
        raise ReplayRefusedError(
            (
                f"The archive has messages published before {_moment(archived)}, "
                "and a replay reads the archive. Give that as until or something earlier, "
                "or run the export first."
            ),
            field="until",
        )
    if request["since"] >= until:
        raise ReplayRefusedError(
            f"since has to be before until, which is {_moment(until)}.", field="since"
        )
    return request["since"], until


def _filter(text: str | None, *, of: Subscription) -> str:
    text = of.filter if text is None else text
    if not text.strip():
        return ""
    try:
        parse_filter(text)
    except FilterError as error:
        detail = f"{error.message} (line {error.line}, column {error.column})"
        raise ReplayRefusedError(
            detail, field="filter", line=error.line, column=error.column
        ) from None
    return text


def _event_types(names: Sequence[str] | None, *, of: Subscription) -> list[str]:
    if not names:
        return [of.event_type.name]
    existing = set(EventType.objects.filter(name__in=names).values_list("name", flat=True)) - {
        UNSUBSCRIBABLE
    }
    for name in names:
        if name not in existing:
            detail = (
                f"There is no event type {name!r} to replay; the catalogue lists those there are."
            )
            raise ReplayRefusedError(detail, field="event_types")
    return list(dict.fromkeys(names))


def _rate(rate: float | None) -> float | None:
    if rate is not None and not SLOWEST_RATE <= rate <= FASTEST_RATE:
        detail = (
            f"Give {SLOWEST_RATE} to {FASTEST_RATE} deliveries per second, "
            "or none: as fast as possible."
        )
        raise ReplayRefusedError(detail, field="rate")
    return rate


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
