"""Storing messages with every delivery they owe, by one statement: `accept.sql`.

Deliveries of many messages have much in common: the targets. Each travels once, however many messages qualify for it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import orjson
from django.conf import settings

from delivery import wake
from delivery.database import array, planned_rows
from delivery.drafts import Draft
from delivery.idempotency import Claim
from subscriptions.matching import Candidate, groups
from subscriptions.models import EventType, Kind

DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that is on disk with so many deliveries."""

    message_id: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class Owed:
    """A message to be stored with a delivery for each of these subscriptions; Inturn's own have no publisher.

    `claim`: an idempotency key that the same statement takes. Those taken before, in the same transaction, are not given.
    """

    publisher_id: int | None
    draft: Draft
    matches: Sequence[Candidate]
    claim: Claim | None = None


class Era(Protocol):
    """The configuration by which messages were matched: see `delivery.publishing.directory`."""

    @property
    def horizon(self) -> int: ...
    @property
    def seen(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class Work:
    """Who has work now, to be told after the commit: lanes, and subscribers with something in their mailbox."""

    lane_ids: Collection[int] = ()
    subscriber_ids: Collection[int] = ()

    def tell(self) -> None:
        wake.lanes(self.lane_ids)
        wake.mailboxes(self.subscriber_ids)


def store(owed: Sequence[Owed], *, as_of: Era | None = None) -> tuple[Sequence[Accepted | None], Work] | None:
    """Execute `accept.sql`, and return the answers and who has work now.

    None as an answer: its key was used before, and it was not stored. None in all: the configuration is not what it
    was `as_of` then, or a subscription was deleted, and nothing was stored.
    """
    if not owed:
        return [], Work()
    drafts = [one.draft for one in owed]
    targets = _Targets(owed)
    ((message_ids, lane_ids),) = planned_rows(
        "accept",
        {
            "horizon": None if as_of is None else as_of.horizon,
            "seen": None if as_of is None else array(as_of.seen),
            "ordinal": array(range(len(drafts))),
            "publisher": array(one.publisher_id for one in owed),
            "event_type": array(draft.event_type.pk for draft in drafts),
            "headers": [orjson.dumps(dict(draft.headers)).decode() for draft in drafts],
            "content_type": [draft.content_type for draft in drafts],
            "body": [draft.body for draft in drafts],
            "destination": [draft.destination.name for draft in drafts],
            "key": [one.claim.key if one.claim else "" for one in owed],
            "digest": [one.claim.digest if one.claim else b"" for one in owed],
            "owed": array(len(one.matches) for one in owed),
            "queue_senders": settings.ENVIRONMENT.queue_senders,
            **targets.parameters(),
        },
    )
    if message_ids is None:
        return None
    accepted = [
        None if id is None else Accepted(id, len(one.matches))
        for id, one in zip(message_ids, owed, strict=True)
    ]
    return accepted, Work(lane_ids or [], targets.mailboxes)


class _Targets:
    """Where messages go: each subscription, with its queue group, stands here once, however many messages qualify."""

    def __init__(self, owed: Sequence[Owed]) -> None:
        self._places: dict[tuple[int, int], int] = {}
        self._rows: list[tuple[EventType, Candidate, int]] = []
        # Of each match: the message's place, from 0, and the target's, from 1.
        self._ordinals: list[int] = []
        self._targets: list[int] = []
        for ordinal, one in enumerate(owed):
            places = [
                self._place(one.draft.event_type, match, group)
                for match, group in zip(one.matches, _groups(one.draft, one.matches), strict=True)
            ]
            self._ordinals += [ordinal] * len(places)
            self._targets += places

    @property
    def mailboxes(self) -> set[int]:
        """The subscribers that fetch."""
        return {match.subscriber_id for _, match, _ in self._rows if match.is_pull}

    def parameters(self) -> dict[str, str]:
        rows = self._rows
        return {
            "subscriptions": array(sorted({match.subscription_id for _, match, _ in rows})),
            "target_subscription": array(match.subscription_id for _, match, _ in rows),
            "target_subscriber": array(match.subscriber_id for _, match, _ in rows),
            "target_group": array(group for _, _, group in rows),
            "target_is_pull": array(match.is_pull for _, match, _ in rows),
            "target_is_volatile": array(event_type.is_volatile for event_type, _, _ in rows),
            "target_seconds_to_live": array(
                _seconds_to_live(event_type, match) for event_type, match, _ in rows
            ),
            "match_ordinal": array(self._ordinals),
            "match_target": array(self._targets),
        }

    def _place(self, event_type: EventType, match: Candidate, group: int) -> int:
        """Return the place of this target, counted from 1."""
        key = match.subscription_id, group
        place = self._places.get(key)
        if place is None:
            self._rows.append((event_type, match, group))
            place = self._places[key] = len(self._rows)
        return place


def _seconds_to_live(event_type: EventType, match: Candidate) -> float:
    """Return after how long the delivery is EXPIRED, -1 for never: a mailbox keeps nothing for ever."""
    ttl = event_type.ttl_seconds
    kept = settings.ENVIRONMENT.mailbox_days * DAY_SECONDS if match.is_pull else None
    return min((seconds for seconds in (ttl, kept) if seconds is not None), default=-1)


def _groups(draft: Draft, matches: Sequence[Candidate]) -> Iterable[int]:
    """Return the queue group of each; -1 is none."""
    return groups(matches) if draft.event_type.kind == Kind.QUEUE else repeat(-1, len(matches))
