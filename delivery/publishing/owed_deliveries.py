"""The deliveries owed by messages: one for each qualifying subscription."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from django.conf import settings

from delivery.database.queries import array
from delivery.publishing.drafts import Draft
from delivery.publishing.idempotency import Claim
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.match import groups
from subscriptions.models import EventType, Kind

DAY_SECONDS = 86_400

PRIORITY = "priority"
# Of a message without the header, or with another value there, such as `low`.
USUAL_PRIORITY = 4
_PRIORITIES = {str(number): number for number in range(10)}


@dataclass(frozen=True, slots=True)
class Owed:
    """A message to store with a delivery for each of these subscriptions.

    Inturn's own messages have no publisher. `claim`: an idempotency key taken by the same
    statement; keys taken earlier in the same transaction are not passed.
    """

    publisher_id: int | None
    draft: Draft
    matches: Sequence[Candidate]
    claim: Claim | None = None


def priority_of(headers: Mapping[str, str]) -> int:
    """Return the priority of a message with these headers, 9 is the highest."""
    return _PRIORITIES.get(headers.get(PRIORITY, "").strip(), USUAL_PRIORITY)


class Targets:
    """The targets of messages: each subscription with the queue group, once for all messages."""

    def __init__(self, owed: Sequence[Owed]) -> None:
        self._owed = owed
        self._places: dict[tuple[int, int], int] = {}
        self._rows: list[tuple[EventType, Candidate, int]] = []
        # For each match: the message's place, from 0, and the target's, from 1. A message's are
        # written at once, and a list shared by many messages of an event type is written once.
        self._ordinals: list[str] = []
        self._targets: list[str] = []
        written: dict[int, str] = {}
        for ordinal, message in enumerate(owed):
            if not message.matches:
                continue
            targets = written.get(id(message.matches))
            if targets is None:
                targets = written[id(message.matches)] = self._written(message)
            self._ordinals.append(",".join([str(ordinal)] * len(message.matches)))
            self._targets.append(targets)

    @property
    def mailboxes(self) -> set[int]:
        """The fetching subscribers."""
        return {
            match.subscriber_id
            for _, match, _ in self._rows
            if match.is_pull and not match.is_shadow
        }

    def parameters(self) -> dict[str, str]:
        rows = self._rows
        return {
            "subscriptions": array(sorted({match.subscription_id for _, match, _ in rows})),
            "target_subscription": array(match.subscription_id for _, match, _ in rows),
            "target_subscriber": array(match.subscriber_id for _, match, _ in rows),
            "target_group": array(group for _, _, group in rows),
            # A SHADOW delivery is in no lane either.
            "target_is_pull": array(match.is_pull or match.is_shadow for _, match, _ in rows),
            "target_is_volatile": array(event_type.is_volatile for event_type, _, _ in rows),
            "target_is_by_priority": array(_is_by_priority(*row) for row in rows),
            "target_seconds_to_live": array(
                _seconds_to_live(event_type, match) for event_type, match, _ in rows
            ),
            "priority": self._priorities(),
            "match_ordinal": f"{{{','.join(self._ordinals)}}}",
            "match_target": f"{{{','.join(self._targets)}}}",
        }

    def _priorities(self) -> str:
        """Return the priority of each message; nothing if no target needs it."""
        if not any(_is_by_priority(*row) for row in self._rows):
            return "{}"
        return array(priority_of(message.draft.headers) for message in self._owed)

    def _written(self, message: Owed) -> str:
        """Return the places of a message's targets."""
        numbered = zip(message.matches, _groups(message.draft, message.matches), strict=True)
        return ",".join(
            str(self._place(message.draft.event_type, match, group)) for match, group in numbered
        )

    def _place(self, event_type: EventType, match: Candidate, group: int) -> int:
        """Return the place of this target, counted from 1."""
        key = match.subscription_id, group
        place = self._places.get(key)
        if place is None:
            self._rows.append((event_type, match, group))
            place = self._places[key] = len(self._rows)
        return place


def _is_by_priority(_: EventType, match: Candidate, group: int) -> bool:
    """True if the lane of this target sends by priority: no queue lane, and no mailbox."""
    return match.is_by_priority and group < 0 and not match.is_pull


def _seconds_to_live(event_type: EventType, match: Candidate) -> float:
    """Return the time until the delivery is EXPIRED, -1 for never.

    A mailbox keeps nothing for ever.
    """
    ttl = event_type.ttl_seconds
    kept = settings.ENVIRONMENT.mailbox_days * DAY_SECONDS if match.is_pull else None
    return min((seconds for seconds in (ttl, kept) if seconds is not None), default=-1)


def _groups(draft: Draft, matches: Sequence[Candidate]) -> Iterable[int]:
    """Return the queue group of each match; -1 without a group."""
    return groups(matches) if draft.event_type.kind == Kind.QUEUE else repeat(-1, len(matches))
