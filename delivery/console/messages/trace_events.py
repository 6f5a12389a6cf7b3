"""The events of a message and of the deliveries, by their names and in the order of time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from delivery.console.messages.as_sent import script_output
from delivery.console.messages.branches import Branches
from delivery.console.messages.trace_event import Event, reason_in_words, tone_of
from delivery.console.messages.trace_rows import Row, TraceRows, is_open
from delivery.models import Attempt, Delivery, EarlierSettlement, JournalKind, Message
from delivery.models.message import public_id
from subscriptions.models import Mode
from subscriptions.values.counts import counted

MOST_EVENTS = 150
# Of a long trace, the beginning shown beside the end.
FIRST_EVENTS = 10
RESUBMITTED = "resubmitted by "
_SAME_TRANSACTION = timedelta(seconds=2)
_OF_MESSAGES = (JournalKind.UNMATCHED, JournalKind.AMBIGUOUS)
_BY_INTURN = ("REDUNDANT", "DUPLICATE", "EXPIRED", "IN_DOUBT", "SHADOW")
# The names of the journal's events; settlements show the effect of the other kinds.
NAMES = {
    JournalKind.UNMATCHED: ("unmatched", "warning"),
    JournalKind.AMBIGUOUS: ("ambiguous", "warning"),
    JournalKind.BLOCKED: ("blocked", "bad"),
    JournalKind.SUSPENDED: ("suspended", "warning"),
    JournalKind.RESUMED: ("resumed", "good"),
    JournalKind.RETRIED: ("retried", "open"),
    JournalKind.SKIPPED: ("skipped", "warning"),
    JournalKind.IN_DOUBT: ("in doubt", "warning"),
    JournalKind.HELD: ("held", "warning"),
    JournalKind.ACTIVATED: ("released", "good"),
    JournalKind.DEACTIVATED: ("inactive", "warning"),
    JournalKind.SHADOW: ("shadow", "neutral"),
    JournalKind.DISABLED: ("URL disabled", "warning"),
    JournalKind.FROZEN: ("URL frozen", "bad"),
    JournalKind.ENABLED: ("URL enabled", "good"),
    JournalKind.ERRORS_TO: ("reported", "warning"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """The scope of a trace: the deliveries shown, each with the newest attempts, newest first."""

    message: Message
    deliveries: Sequence[tuple[Delivery, Sequence[Attempt]]]
    branches: Branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The events, oldest first; `left_out` events are missing after the first FIRST_EVENTS.

    `is_whole` is False if a search for events took too long.
    """

    events: list[Event]
    left_out: int
    is_whole: bool

    @property
    def beginning(self) -> list[Event]:
        return self.events[:FIRST_EVENTS] if self.left_out else self.events

    @property
    def rest(self) -> list[Event]:
        return self.events[FIRST_EVENTS:] if self.left_out else []


def build_trace(traced: Traced, rows: TraceRows, *, most: int = MOST_EVENTS) -> Trace:
    # Sorting keeps the order of events of the same time, so they are listed in the order of causes.
    events = sorted(_events(traced, rows), key=lambda event: event.at)
    left_out = max(len(events) - most, 0)
    if left_out:
        events = events[:FIRST_EVENTS] + events[FIRST_EVENTS + left_out :]
    is_whole = rows.entries is not None and rows.reports is not None
    return Trace(events=events, left_out=left_out, is_whole=is_whole)


def _events(traced: Traced, rows: TraceRows) -> Iterator[Event]:
    entries = rows.entries or []
    yield from _publication(traced, entries)
    for delivery, attempts in traced.deliveries:
        earlier = [row for row in rows.earlier if row.delivery_id == delivery.pk]
        yield from _of_delivery(delivery, attempts, earlier=earlier, entries=entries)
    yield from _of_journal(traced, entries)
    yield from _branches(traced, rows)


def _publication(traced: Traced, entries: Sequence[Row]) -> Iterator[Event]:
    message = traced.message
    words = f"by {message.publisher.name}" if message.publisher else "by Inturn"
    if message.destination:
        words += f", for {message.destination} only"
    if message.edited_from_id is not None:
        words = f"as an edited copy of {public_id(message.edited_from_id)}"
    if (answered := traced.branches.answered) is not None:
        words = f"as the response to {public_id(answered.message_id)}, by callback"
    if (replied := traced.branches.replied) is not None:
        words = f"as the reply to {public_id(replied.message_id)}, delivery {replied.delivery_id}"
    yield Event(at=message.published_at, name="published", words=words)
    if message.owed:
        count = counted(message.owed, "subscription")
        yield Event(at=message.published_at, name="matched", tone="good", words=count)
    elif message.owed == 0 and not any(row["kind"] == JournalKind.UNMATCHED for row in entries):
        yield Event(at=message.published_at, name="unmatched", tone="warning")


def _of_delivery(
    delivery: Delivery,
    attempts: Sequence[Attempt],
    *,
    earlier: Sequence[EarlierSettlement],
    entries: Sequence[Row],
) -> Iterator[Event]:
    if delivery.replay is not None:
        words = f"replay {delivery.replay_id}, requested by {delivery.replay.asked_by}"
        at = max(delivery.replay.asked_at, delivery.message.published_at)
        yield Event(at=at, name="replayed", tone="open", words=words, delivery=delivery)
    if (made := script_output(delivery)) is not None:
        words = f"version {made.script_version} made the request"
        yield Event(at=made.made_at, name="script", words=words, delivery=delivery)
    yield from _attempts(delivery, attempts)
    for row in earlier:
        yield _settled(row.settled_at, row.status, row.reason, delivery)
        # A decision about a delivery in doubt is shown by the settlement.
        if row.ended_reason.startswith(RESUBMITTED) or not row.ended_reason:
            words = reason_in_words(row.ended_reason).removeprefix("resubmitted ") or _by(
                row, entries
            )
            yield Event(
                at=row.ended_at, name="resubmitted", tone="open", words=words, delivery=delivery
            )
    if delivery.settled_at is not None:
        yield _settled(delivery.settled_at, delivery.status, delivery.reason, delivery)


def _attempts(delivery: Delivery, attempts: Sequence[Attempt]) -> Iterator[Event]:
    noun = "fetch" if delivery.subscription.mode == Mode.PULL else "attempt"
    if attempts and (hidden := attempts[-1].number - 1) > 0:
        words = counted(hidden, f"earlier {noun}")
        yield Event(at=attempts[-1].started_at, name="…", words=words, delivery=delivery)
    for attempt in reversed(attempts):
        code = "" if attempt.status_code is None else f", {attempt.status_code}"
        yield Event(
            at=attempt.started_at,
            name=attempt.outcome,
            tone=tone_of(attempt.outcome, otherwise="bad"),
            words=f"{noun} {attempt.number}{code}",
            detail=attempt.error.removeprefix(f"{attempt.status_code}").removeprefix(":").strip(),
            delivery=delivery,
        )


def _settled(at: datetime, status: str, reason: str, delivery: Delivery) -> Event:
    # The last attempt's error stands above already; our own words may name a person and a job.
    words = (
        reason_in_words(reason) if status in ("CANCELLED", "DELIVERED", *_BY_INTURN) else "settled"
    )
    return Event(
        at=at, name=status, tone=tone_of(status), words=words or "settled", delivery=delivery
    )


def _by(row: EarlierSettlement, entries: Sequence[Row]) -> str:
    """Return who ended a settlement of before that was stored, by the journal."""
    for entry in entries:
        is_of_it = entry["delivery_id"] == row.delivery_id and entry["kind"] == "RESUBMITTED"
        if is_of_it and abs(entry["at"] - row.ended_at) < _SAME_TRANSACTION:
            return f"by {entry['actor']}"
    return ""


def _of_journal(traced: Traced, entries: Sequence[Row]) -> Iterator[Event]:
    of = {delivery.pk: delivery for delivery, _ in traced.deliveries}
    lanes = {row.lane_id: row.lane for row in of.values() if row.lane is not None}
    for entry in entries:
        delivery = of.get(entry["delivery_id"])
        if entry["kind"] not in NAMES or not (
            delivery
            or entry["kind"] in _OF_MESSAGES
            or any(_concerns(entry, row) for row in of.values())
        ):
            continue
        name, tone = NAMES[entry["kind"]]
        text, lane = entry["text"], lanes.get(entry["lane_id"])
        if lane is not None and not delivery and not entry["actor"]:
            text = f"lane {lane}: {text}"
        if entry["actor"]:
            text = f"{text.rstrip('.')}, by {entry['actor']}"
        yield Event(at=entry["at"], name=name, tone=tone, detail=text, delivery=delivery)


def _concerns(entry: Row, row: Delivery) -> bool:
    """Return whether the delivery was open, and among the entry's deliveries."""
    subscription_id, lane_id = entry["subscription_id"], entry["lane_id"]
    is_of_all = subscription_id is None and lane_id is None
    is_of_lane = lane_id is not None and lane_id == row.lane_id
    return is_open(row, entry["at"]) and (
        is_of_all or is_of_lane or subscription_id == row.subscription_id
    )


def _branches(traced: Traced, rows: TraceRows) -> Iterator[Event]:
    of = {delivery.pk: delivery for delivery, _ in traced.deliveries}
    for reply in traced.branches.replies:
        if reply.reply_id is not None:
            words, delivery = f"by {public_id(reply.reply_id)}", of.get(reply.delivery_id)
            yield Event(
                at=reply.replied_at, name="replied", tone="good", words=words, delivery=delivery
            )
    for shown in traced.branches.callbacks:
        if shown.callback.answered_at is not None:
            words = f"received; forwarded as {shown.answer}"
            yield Event(at=shown.callback.answered_at, name="callback", tone="good", words=words)
    for copy in rows.copies:
        words = f"{copy.message.public_id} was sent" + (f" by {copy.actor}" if copy.actor else "")
        yield Event(at=copy.message.published_at, name="edited copy", tone="open", words=words)
    for report in rows.reports or []:
        words = f"as {public_id(report['message_id'])}"
        delivery = of.get(report["delivery_id"])
        yield Event(at=report["published_at"], name="reported", words=words, delivery=delivery)
