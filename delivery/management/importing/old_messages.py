"""The fields of a line about a message of the old broker, validated."""

import base64
import re
from dataclasses import dataclass, field
from datetime import datetime

from delivery.incoming.batch_items import body_of, headers_of
from delivery.incoming.headers import MAX_IDEMPOTENCY_KEY_LENGTH
from delivery.incoming.problems import Problem
from delivery.management.importing.lines import ImportLineError, Line
from subscriptions.matching.candidates import Candidate
from subscriptions.models import EventType, Processing, Publisher, Subscription, SubscriptionStatus
from subscriptions.values.times import parse_time

_KEY = re.compile(rf"[!-~](?:[ -~]{{0,{MAX_IDEMPOTENCY_KEY_LENGTH - 2}}}[!-~])?")
_BETWEEN_NAMES = re.compile(r"[\s,;]+")


def text_of_line(line: Line, name: str, default: str = "") -> str:
    value = line.fields.get(name, default)
    if not isinstance(value, str):
        raise ImportLineError(line.number, f"{name}: write a text.")
    return value


def key_of_line(line: Line) -> str:
    """Return the old broker's key; a number counts as text."""
    value = line.fields.get("key")
    key = (
        str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else text_of_line(line, "key")
    )
    if not _KEY.fullmatch(key):
        detail = (
            "key: write the id of the message in the old broker, "
            f"1 to {MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters."
        )
        raise ImportLineError(line.number, detail)
    return key


def moment_of(line: Line, name: str) -> datetime | None:
    """Return a time; without a zone it is UTC. None if the line has none."""
    text = text_of_line(line, name)
    try:
        return parse_time(text) if text else None
    except ValueError:
        raise ImportLineError(
            line.number, f"{name}: {text[:40]!r} is no time; write 2026-11-22T10:15:00Z."
        ) from None


def headers_in(line: Line) -> dict[str, str]:
    try:
        return headers_of(line.fields.get("headers", {}))
    except Problem as problem:
        raise ImportLineError(line.number, str(problem.detail)) from None


def body_in(line: Line) -> tuple[bytes, bool]:
    """Return the bytes of the body, and whether they were given as JSON."""
    try:
        if line.text:
            return body_of(line.fields, line.text), "body" in line.fields
        if "body_base64" in line.fields:
            return base64.b64decode(line.fields["body_base64"], validate=True), False
        return line.fields.get("body", "").encode(), False
    except Problem as problem:
        raise ImportLineError(line.number, str(problem.detail)) from None
    except ValueError:
        raise ImportLineError(line.number, "body_base64: this is not base64.") from None


def names_of_line(line: Line) -> list[str] | None:
    """Return the names in `subscriptions`, a JSON list or a text with spaces; None without it."""
    value = line.fields.get("subscriptions")
    if value is None:
        return None
    names = _BETWEEN_NAMES.split(value.strip()) if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ImportLineError(
            line.number, "subscriptions: write a list of subscriber/subscription, or leave it out."
        )
    return list(dict.fromkeys(names))


@dataclass(slots=True)
class NamedObjects:
    """The configured objects named by lines, each loaded once."""

    event_types: dict[str, EventType] = field(default_factory=dict)
    publishers: dict[str, Publisher] = field(default_factory=dict)
    _subscriptions: dict[str, tuple[int, int, Candidate]] = field(default_factory=dict)

    def event_type(self, line: Line, name: str) -> EventType:
        if name not in self.event_types:
            found = EventType.objects.filter(name=name).first()
            if found is None:
                raise ImportLineError(
                    line.number, f"event: there is no event type {name[:200]!r}; create it first."
                )
            self.event_types[name] = found
        return self.event_types[name]

    def publisher(self, line: Line, name: str) -> Publisher:
        if not name:
            raise ImportLineError(
                line.number, "publisher: say whose message it is, here or by --publisher."
            )
        if name not in self.publishers:
            found = Publisher.objects.filter(name=name).first()
            if found is None:
                raise ImportLineError(
                    line.number,
                    f"publisher: there is no publisher {name[:200]!r}; create it first.",
                )
            self.publishers[name] = found
        return self.publishers[name]

    def subscription(
        self, line: Line, name: str, *, event_type: EventType | None = None
    ) -> Candidate:
        """Return a subscription by subscriber/subscription, of any status and with any filter."""
        if name not in self._subscriptions:
            self._subscriptions[name] = _found(line, name)
        _, event_type_id, candidate = self._subscriptions[name]
        if event_type is not None and event_type_id != event_type.pk:
            detail = (
                f"subscriptions: {name} is a subscription to another event type than {event_type}."
            )
            raise ImportLineError(line.number, detail)
        return candidate

    def window_seconds(self, name: str) -> int:
        return self._subscriptions[name][0]


def _found(line: Line, name: str) -> tuple[int, int, Candidate]:
    subscriber, _, subscription = name.partition("/")
    row = (
        Subscription.objects.filter(subscriber__name=subscriber, name=subscription)
        .select_related("subscriber")
        .defer("headers", "auth")
        .first()
    )
    if row is None:
        detail = (
            f"subscriptions: there is no {name[:200]!r}; "
            "write subscriber/subscription, or create it first."
        )
        raise ImportLineError(line.number, detail)
    return row.dedup_window_seconds, row.event_type_id, _candidate(row)


def _candidate(subscription: Subscription) -> Candidate:
    """Return a subscription of any status in the form of publishing."""
    owner = subscription.subscriber
    return Candidate(
        subscription_id=subscription.pk,
        subscriber_id=owner.pk,
        header_filter_string=subscription.header_filter_string,
        filter=subscription.filter,
        filter_identity=subscription.filter_identity,
        match_mode=owner.match_mode,
        dedup_mode=subscription.dedup_mode,
        dedup_path=subscription.dedup_path,
        mode=subscription.mode,
        is_by_priority=owner.by_priority and owner.processing == Processing.CONCURRENT,
        join_mode=subscription.join_mode,
        join_name=subscription.join_name,
        join_path=subscription.join_path,
        is_shadow=subscription.status == SubscriptionStatus.SHADOW,
        takes_unmatched=subscription.takes_unmatched,
    )
