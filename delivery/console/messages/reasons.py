"""Why each subscription got a message or not: as it was configured then, and as it is today.

A delivery is a fact; the reason beside it comes from the subscriptions as they were, which the
configuration log has (`subscriptions.matching.past_subscriptions`). Where impossible, today's
configuration explains, and the page says so.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from delivery.models import Delivery, Message
from delivery.publishing.explain import explain_message_by
from subscriptions.matching.explanations import Explanation, masked, subscriptions_of
from subscriptions.matching.match import Mismatch
from subscriptions.matching.past_subscriptions import (
    MOST_CHANGES,
    PastSubscriptions,
    TooManyChangesError,
    subscriptions_at,
)
from subscriptions.models import ConfigurationChange, Subscription
from subscriptions.values.names import UNSUBSCRIBABLE

# More are explained only on request: each is loaded, and the filter tried.
EXPLAINED = 150
_COLUMNS = (
    "name",
    "status",
    "filter",
    "header_filter_string",
    "position",
    "takes_unmatched",
    "join_mode",
    "join_name",
    "created_at",
    "event_type_id",
    "subscriber__name",
    "subscriber__status",
    "subscriber__match_mode",
)
_ABSENT = "it did not exist yet"
_UNEXPLAINED = "it matched; the configuration log does not say how"
_MISSED = "it matched by the configuration log, but was not yet, or no longer, so for publishing"
_ALONE = "Inturn sent this message to the subscriptions with deliveries only"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchReason:
    """A subscription: `reason` is the past reason, `now` is today's, empty if it is the same.

    `change` is the first change of the configuration since then, `filter` the filter of then.
    `exists` is False if it was deleted since.
    """

    subscription: Subscription
    matched: bool
    reason: str | Mismatch
    now: str | Mismatch = ""
    change: ConfigurationChange | None = None
    exists: bool = True
    filter: str = ""

    @property
    def change_query(self) -> str:
        """The query of the configuration log with the changes of these objects."""
        if self.change is None:
            return ""
        of = {"object_type": self.change.object_type, "object_name": self.change.object_name}
        return urlencode(of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """The reasons, the matches first.

    `as_now` says why they are of today; empty if they are those of then. `too_many` if there are
    more than EXPLAINED subscriptions, and none is explained.
    """

    rows: list[MatchReason] = field(default_factory=list)
    as_now: str = ""
    too_many: bool = False


def reasons_of(message: Message, *, may_see: bool, explains_all: bool = False) -> Reasons:
    """Return the reasons; without `may_see` they have no values of headers."""
    present = subscriptions_of(message.event_type).only(*_COLUMNS)
    today = list(present if explains_all else present[: EXPLAINED + 1])
    if len(today) > EXPLAINED and not explains_all:
        return Reasons(too_many=True)
    now = {explained.subscription.pk: explained for explained in explain_message_by(message, today)}
    got = set(
        Delivery.objects.of_message(message.pk)
        .filter(subscription_id__in=list(now), replay=None)
        .values_list("subscription_id", flat=True)
    )
    try:
        past = subscriptions_at(message.published_at, message.event_type, today)
    except TooManyChangesError:
        rows = [_of_today(explained, got) for explained in now.values()]
        as_now = f"the configuration has been changed more than {MOST_CHANGES} times since"
    else:
        rows, as_now = list(_of_then(message, past, now, got)), ""
    rows = [row if may_see else _masked(row) for row in rows]
    return Reasons(rows=sorted(rows, key=lambda row: not row.matched), as_now=as_now)


def _of_today(explanation: Explanation, got: Collection[int]) -> MatchReason:
    return MatchReason(
        subscription=explanation.subscription,
        matched=explanation.subscription.pk in got,
        reason=explanation.reason,
        filter=explanation.subscription.filter,
    )


def _of_then(
    message: Message, past: PastSubscriptions, now: Mapping[int, Explanation], got: Collection[int]
) -> Sequence[MatchReason]:
    is_unchanged = not past.changes and not past.created
    explained = () if is_unchanged else explain_message_by(message, past.rows)
    then = (
        now
        if is_unchanged
        else {explanation.subscription.pk: explanation for explanation in explained}
    )
    reasons = []
    for pk in {**then, **now}:
        earlier, today = then.get(pk), now.get(pk)
        is_same = earlier is not None and today is not None and earlier.reason == today.reason
        subscription = today.subscription if today is not None else then[pk].subscription
        reasons.append(
            MatchReason(
                subscription=subscription,
                matched=pk in got,
                reason=_reason(message, earlier, matched=pk in got),
                now="" if is_same or today is None else today.reason,
                change=past.changes.get(pk),
                exists=today is not None,
                filter="" if earlier is None else earlier.subscription.filter,
            )
        )
    return reasons


def _reason(message: Message, then: Explanation | None, *, matched: bool) -> str | Mismatch:
    """Return the past reason, unless the delivery, or its absence, disproves it."""
    if then is None:
        return _UNEXPLAINED if matched else _ABSENT
    if then.qualifies == matched:
        return then.reason
    if matched:
        return _UNEXPLAINED
    is_for_few = message.edited_from_id is not None or message.event_type.name == UNSUBSCRIBABLE
    return _ALONE if is_for_few or message.publisher_id is None else _MISSED


def _masked(row: MatchReason) -> MatchReason:
    return replace(row, reason=masked(row.reason), now=masked(row.now))
