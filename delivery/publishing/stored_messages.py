"""Stored messages: a single statement stores messages with the owed deliveries."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson
from django.conf import settings

from delivery.database.connections import CHANNEL
from delivery.database.queries import array, planned_rows
from delivery.lifecycle import notifier
from delivery.lifecycle.traces import Traces, traces
from delivery.publishing.drafts import Draft
from delivery.publishing.owed_deliveries import Owed, Targets
from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.explanations import why_not_there


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message on disk with so many deliveries."""

    message_id: int
    deliveries: int


class Configuration(Protocol):
    """The configuration by which messages were matched: see `delivery.incoming.short_way.cache`."""

    @property
    def horizon(self) -> int: ...
    @property
    def seen(self) -> Sequence[int]: ...


@dataclass(frozen=True, slots=True)
class NewWork:
    """Lanes and mailboxes (by subscriber) with new work, to be notified after the commit."""

    lane_ids: Collection[int] = ()
    subscriber_ids: Collection[int] = ()

    def notify(self) -> None:
        notifier.notify_of_work(self.lane_ids)
        notifier.notify_of_messages(self.subscriber_ids)


def why_unmatched(draft: Draft, matches: Sequence[Candidate]) -> str:
    """Return why the subscription of the draft's Destination gets nothing.

    Empty if it gets the message, or if no subscription is named. Takes a query, only then.
    """
    if matches or draft.destination.subscription_id is None:
        return ""
    return why_not_there(draft.destination, document(draft.headers, draft.body))


def store_messages(
    owed: Sequence[Owed],
    *,
    as_of: Configuration | None = None,
    ids: Sequence[int] = (),
    is_alone: bool = False,
) -> tuple[Sequence[Accepted | None], NewWork] | None:
    """Execute `accept.sql`, and return the answers and the new work.

    None as an answer: the key was used before, and the message was not stored. None as the result:
    the configuration has changed since `as_of`, or a subscription was deleted, and nothing was
    stored. `ids` are reserved ids for the messages, ascending; without them new ids are drawn.
    `is_alone`: the process stores no others at this moment, so the transaction may notify the
    senders itself.
    """
    if not owed:
        return [], NewWork()
    drafts = [message.draft for message in owed]
    targets = Targets(owed)
    tracing = traces()
    began_ns = time.time_ns() if tracing else 0
    notifies = is_alone and sum(len(message.matches) for message in owed) <= notifier.IDS_A_PAYLOAD
    ((message_ids, lane_ids, _),) = planned_rows(
        "accept",
        {
            "horizon": None if as_of is None else as_of.horizon,
            "seen": None if as_of is None else array(as_of.seen),
            "ordinal": array(range(len(drafts))),
            "ids": array(ids),
            "publisher": array(message.publisher_id for message in owed),
            "event_type": array(draft.event_type.pk for draft in drafts),
            "headers": [orjson.dumps(dict(draft.headers)).decode() for draft in drafts],
            "content_type": [draft.content_type for draft in drafts],
            "body": [draft.body for draft in drafts],
            "destination": [draft.destination.name for draft in drafts],
            "named": array(draft.destination.subscription_id or -1 for draft in drafts),
            "why_not": [why_unmatched(message.draft, message.matches) for message in owed],
            "key": [message.claim.key if message.claim else "" for message in owed],
            "digest": [message.claim.digest if message.claim else b"" for message in owed],
            "owed": array(len(message.matches) for message in owed),
            "queue_senders": settings.ENVIRONMENT.queue_senders,
            "channel": CHANNEL if notifies else "",
            **targets.parameters(),
        },
    )
    if message_ids is None:
        return None
    accepted = [
        None if id is None else Accepted(id, len(message.matches))
        for id, message in zip(message_ids, owed, strict=True)
    ]
    if tracing:
        _trace(tracing, drafts, accepted, began_ns=began_ns)
    return accepted, NewWork([] if notifies else lane_ids or [], targets.mailboxes)


def _trace(
    tracing: Traces,
    drafts: Sequence[Draft],
    accepted: Sequence[Accepted | None],
    *,
    began_ns: int,
) -> None:
    ended_ns = time.time_ns()
    for draft, stored in zip(drafts, accepted, strict=True):
        if stored is not None:
            tracing.record_publish(
                stored.message_id,
                draft.event_type.name,
                draft.headers,
                times=(began_ns, ended_ns),
            )
