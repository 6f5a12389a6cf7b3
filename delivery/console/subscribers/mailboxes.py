"""The mailboxes of subscribers: their messages, and the rates of fetches and acknowledgements."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from delivery.database.queries import named_rows
from delivery.mailbox import counts as mailbox_figures
from delivery.mailbox.counts import Figures
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded
from delivery.standing.reading import standing_of_mailboxes
from delivery.standing.vocabulary import Standing

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MailboxFigures:
    """The figures of a mailbox, or of a subscription in it, for display."""

    subscriber_id: int
    available: Bounded
    delayed: Bounded
    in_flight: Bounded
    held: Bounded
    oldest_at: datetime | None
    received_per_minute: int
    acknowledged_per_minute: int

    @property
    def holds(self) -> Bounded:
        """The number of unacknowledged messages."""
        counts = (self.available, self.delayed, self.in_flight, self.held)
        return _bounded(sum(count.found for count in counts))


def mailbox_of_subscription(subscription_id: int, *, now: datetime) -> MailboxFigures | None:
    """Return the figures of a subscription's mailbox; None unless the mode is PULL."""
    figures = mailbox_figures.figures_of_subscription(subscription_id, now=now, limit=WAITING_LIMIT)
    return None if figures is None else _shown(figures)


def mailboxes_of_subscribers(
    subscriber_ids: Collection[int], *, now: datetime
) -> dict[int, MailboxFigures]:
    """Return the figures by subscriber; a subscriber without PULL subscriptions has no mailbox."""
    by_id = mailbox_figures.figures_of_subscribers(subscriber_ids, now=now, limit=WAITING_LIMIT)
    return {id: _shown(figures) for id, figures in by_id.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMailbox:
    """A mailbox on the overview."""

    subscriber: str
    figures: MailboxFigures
    standing: Standing


def mailboxes_with_messages(*, limit: int, now: datetime) -> list[ShownMailbox]:
    """Return the mailboxes with messages, oldest message first."""
    rows = named_rows("fullest_mailboxes", {"rows": limit})
    if not rows:
        return []
    ids = [row["subscriber_id"] for row in rows]
    shown, standings = mailboxes_of_subscribers(ids, now=now), standing_of_mailboxes(ids)
    return [
        ShownMailbox(
            subscriber=row["subscriber"],
            figures=shown[row["subscriber_id"]],
            standing=standings[row["subscriber_id"]],
        )
        for row in rows
        if row["subscriber_id"] in shown.keys() & standings.keys()
    ]


def _shown(figures: Figures) -> MailboxFigures:
    return MailboxFigures(
        subscriber_id=figures.subscriber_id,
        available=_bounded(figures.available),
        delayed=_bounded(figures.delayed),
        in_flight=_bounded(figures.in_flight),
        held=_bounded(figures.held),
        oldest_at=figures.oldest_at,
        received_per_minute=figures.received_per_minute,
        acknowledged_per_minute=figures.acknowledged_per_minute,
    )


def _bounded(count: int) -> Bounded:
    return Bounded(count, WAITING_LIMIT)
