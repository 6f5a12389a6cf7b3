"""The page of a message: its deliveries with attempts, and why each subscription got it or not."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from delivery.console.deliveries import curl, next_try
from delivery.console.deliveries.as_sent import SentRequest, sent_request
from delivery.console.deliveries.next_try import NextTry
from delivery.console.deliveries.timeline import Moment, timeline
from delivery.console.messages.callbacks import ShownCallback, answered_by, callbacks_of
from delivery.console.messages.replies import replied_by, replies_to
from delivery.console.payloads.payload import Payload, payload
from delivery.models import Attempt, Callback, Delivery, Message, Reply
from delivery.models.delivery import Redelivery
from delivery.publishing.explain import explain_message
from delivery.states import OPEN, OutcomeClass
from subscriptions.matching.explanations import Explanation
from subscriptions.matching.match import without_value
from subscriptions.models import Mode

SHOWN_DELIVERIES = 100
SHOWN_ATTEMPTS = 10
SHOWN_EXPLANATIONS = 200
SHOWN_COPIES = 20
# The prefix of the reason of a resubmitted delivery; see `delivery.support.resubmit`.
RESUBMITTED = "resubmitted by "


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttempt:
    """`request` is rebuilt as far as it is known; None for an attempt from a mailbox."""

    attempt: Attempt
    answer: Payload | None
    request: SentRequest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDelivery:
    """A delivery with its newest attempts, newest first.

    `earlier` counts those that are not shown.
    """

    delivery: Delivery
    attempts: list[ShownAttempt] = field(default_factory=list)
    next_try: NextTry | None = None

    @property
    def timeline(self) -> list[Moment]:
        attempts = [shown.attempt for shown in self.attempts]
        return timeline(self.delivery, attempts, is_fetched=self.is_fetched)

    @property
    def is_fetched(self) -> bool:
        """True if clients fetch it from a mailbox, rather than Inturn sending it."""
        return self.delivery.subscription.mode == Mode.PULL

    @property
    def place(self) -> str:
        """The state of an open delivery in a mailbox: `HELD`, `LAPSED`, `LATER` or `AVAILABLE`.

        A HELD one is leased to the client that fetched it last. A LAPSED one was held too long: it
        is handed out again, but can be acknowledged until then.
        """
        return place_of(self.delivery, now=timezone.now())

    @property
    def earlier(self) -> int:
        return max(self.delivery.attempts - len(self.attempts), 0)

    @property
    def attempts_of(self) -> str:
        return attempts_of(self.delivery)

    @property
    def fetched_of(self) -> str:
        """The count in words: `once`, `3 times`, `3 of at most 5 times`.

        After a delivery was put back it is, for example, `not since it was put back, 3 times
        before`.
        """
        before = self.delivery.attempts_before
        if not before:
            return _times(attempts_of(self.delivery))
        is_fetched_since = self.delivery.receive_count > before
        since = _times(attempts_of(self.delivery)) if is_fetched_since else "not"
        return f"{since} since the resubmission, {_times(str(before))} before"

    @property
    def reason(self) -> str:
        """The reason for its status, unless the newest attempt says the same."""
        error = self.attempts[0].attempt.error if self.attempts else ""
        return "" if self.delivery.reason == error else self.delivery.reason

    @property
    def sent_again(self) -> str:
        """Why it is, or was, sent again; or that it was not, after a sender died.

        Empty if its `reason` says so already.
        """
        is_in_reason = self.delivery.reason.startswith(RESUBMITTED)
        if is_in_reason or not self.delivery.redelivery:
            return ""
        reason = self.delivery.get_redelivery_display()
        if self.delivery.redelivery == Redelivery.IN_DOUBT and self._ends_in_doubt:
            return f"Not resubmitted: {reason}"
        return f"{'Back in the mailbox' if self.is_fetched else 'Sent again'}: {reason}"

    @property
    def _ends_in_doubt(self) -> bool:
        """True if nothing was sent after the lost attempt."""
        is_last_lost = bool(self.attempts) and self.attempts[0].attempt.outcome == OutcomeClass.LOST
        return self.delivery.status not in OPEN and is_last_lost

    @property
    def next_attempt_of(self) -> str:
        return attempts_of(self.delivery, following=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    message: Message
    body: Payload
    headers: list[tuple[str, Any]]
    deliveries: list[ShownDelivery]
    more_deliveries: bool
    explanations: list[Explanation]
    more_explanations: int
    callbacks: list[ShownCallback]
    answered: Callback | None
    replies: list[Reply]
    replied: Reply | None
    copies: list[Message]
    publishing: str


def place_of(delivery: Delivery, *, now: datetime) -> str:
    """Return `ShownDelivery.place`; empty for settled deliveries and for those not in a mailbox."""
    if delivery.status not in OPEN or delivery.subscription.mode != Mode.PULL:
        return ""
    if delivery.lease_expires_at is not None:
        return "HELD" if delivery.lease_expires_at > now else "LAPSED"
    return (
        "LATER"
        if delivery.next_attempt_at is not None and delivery.next_attempt_at > now
        else "AVAILABLE"
    )


def attempts_of(delivery: Delivery, *, following: int = 0) -> str:
    """Return the number of attempts that count, such as `3 of 13`; without a limit, the number.

    In a mailbox each fetch is an attempt.
    """
    subscription = delivery.subscription
    is_fetched = subscription.mode == Mode.PULL
    most = subscription.max_receives if is_fetched else subscription.policy.max_attempts
    made = delivery.receive_count if is_fetched else delivery.attempts
    count = made - delivery.attempts_before + following
    return f"{count}" if most is None else f"{count} of {most}"


def _times(count: str) -> str:
    return {"0": "never", "1": "once"}.get(count) or f"{count} times".replace(
        " of ", " of at most "
    )


def read_message_page(message: Message, *, may_see: bool) -> MessagePage:
    """Load the whole page.

    Without `may_see` it has no command that contains a payload.
    """
    deliveries = list(
        Delivery.objects.of_message(message.pk)
        .select_related(
            "subscription__subscriber", "subscription__policy", "lane__subscriber", "callback"
        )
        .order_by("id")[: SHOWN_DELIVERIES + 1]
    )
    for delivery in deliveries:
        delivery.message = message
    explanations = _explanations(message, may_see=may_see)
    return MessagePage(
        message=message,
        body=payload(bytes(message.body)),
        headers=sorted(message.headers.items()),
        deliveries=with_attempts(deliveries[:SHOWN_DELIVERIES], limit=SHOWN_ATTEMPTS),
        more_deliveries=len(deliveries) > SHOWN_DELIVERIES,
        explanations=explanations[:SHOWN_EXPLANATIONS],
        more_explanations=len(explanations) if len(explanations) > SHOWN_EXPLANATIONS else 0,
        callbacks=callbacks_of(message),
        answered=answered_by(message),
        replies=replies_to(message),
        replied=replied_by(message),
        copies=list(
            Message.objects.filter(edited_from=message).only("id").order_by("-id")[:SHOWN_COPIES]
        ),
        publishing=curl.publish_command(message) if may_see else "",
    )


def with_attempts(deliveries: Sequence[Delivery], *, limit: int) -> list[ShownDelivery]:
    """Add to each delivery its newest attempts up to a limit, with one query for all."""
    attempts: dict[int, list[ShownAttempt]] = defaultdict(list)
    newest = Attempt.objects.filter(delivery__in=deliveries).newest(limit).order_by("-number")
    of = {delivery.pk: delivery for delivery in deliveries}
    for attempt in newest:
        attempts[attempt.delivery_id].append(_shown(attempt, of[attempt.delivery_id]))
    next_tries = next_try.of_each(deliveries)
    return [
        ShownDelivery(delivery=row, attempts=attempts[row.pk], next_try=next_tries.get(row.pk))
        for row in deliveries
    ]


def _shown(attempt: Attempt, delivery: Delivery) -> ShownAttempt:
    excerpt = bytes(attempt.excerpt)
    is_fetched = delivery.subscription.mode == Mode.PULL
    return ShownAttempt(
        attempt=attempt,
        answer=payload(excerpt) if excerpt else None,
        request=None if is_fetched else sent_request(delivery, attempt=attempt),
    )


def _explanations(message: Message, *, may_see: bool) -> list[Explanation]:
    """Return those that qualify first: there may be thousands that do not."""
    explanations = sorted(
        explain_message(message), key=lambda explanation: not explanation.qualifies
    )
    if may_see:
        return explanations
    return [replace(each, reason=without_value(each.reason)) for each in explanations]
