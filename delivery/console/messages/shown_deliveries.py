"""A delivery as the console shows it: the newest attempts, the place, the actions and the body."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from delivery.console.messages import next_try
from delivery.console.messages.as_sent import SentRequest, script_output, sent_request
from delivery.console.messages.next_try import NextTry
from delivery.console.payloads.difference import DifferenceLine, difference
from delivery.models import Attempt, Delivery
from delivery.models.delivery import Redelivery
from delivery.states import FAILURES, OPEN, OutcomeClass
from delivery.support.payload import Payload, payload_of
from delivery.support.resubmit import Possible, possible
from subscriptions.models import Mode, SubscriptionStatus

# How much of a body is shown beside each response, and how many bodies of a page are compared.
BEGINNING = 600
COMPARED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttempt:
    """`request` is rebuilt as far as it is known; None for an attempt from a mailbox."""

    attempt: Attempt
    answer: Payload | None
    request: SentRequest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDelivery:
    """A delivery with the newest attempts, newest first.

    `earlier` counts those not shown. `sent` is the script's body in place of the message's, and
    `difference` the difference of the two, None if they were not compared. `body` is the beginning
    of the request's body. Without the right to see payloads all three are missing.
    """

    delivery: Delivery
    attempts: list[ShownAttempt] = field(default_factory=list)
    next_try: NextTry | None = None
    sent: Payload | None = None
    difference: list[DifferenceLine] | None = None
    body: str = ""

    @property
    def possible(self) -> Possible:
        return possible(self.delivery)

    @property
    def is_failing(self) -> bool:
        is_retried = self.delivery.status in OPEN and self.delivery.attempts > 0
        return is_retried or self.delivery.status in FAILURES

    @property
    def may_be_stopped(self) -> bool:
        """True if the failures are a reason to stop the subscription, or it is stopped."""
        is_held = self.delivery.subscription.status != SubscriptionStatus.ACTIVE
        return self.is_failing or (is_held and self.delivery.status in OPEN)

    @property
    def sent_id(self) -> str:
        """An id for the page's element with the sent body."""
        return f"sent-{self.delivery.pk}"

    @property
    def is_fetched(self) -> bool:
        """True if clients fetch it from a mailbox, rather than Inturn sending it."""
        return self.delivery.subscription.mode == Mode.PULL

    @property
    def place(self) -> str:
        """The state of an open delivery in a mailbox: `LEASED`, `LAPSED`, `LATER` or `AVAILABLE`.

        A LEASED delivery is leased to the client of the last fetch. The lease of a LAPSED delivery
        is over: it is handed out again, but can be acknowledged until then.
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
        """The reason for the status, unless the newest attempt says the same."""
        error = self.attempts[0].attempt.error if self.attempts else ""
        return "" if self.delivery.reason == error else self.delivery.reason

    @property
    def sent_again(self) -> str:
        """Why it is, or was, sent again; or the lack of it since a sender's death.

        Empty if a person resubmitted it: the trace says who.
        """
        if self.delivery.redelivery in (Redelivery.NONE, Redelivery.RESUBMITTED):
            return ""
        if self.delivery.redelivery == Redelivery.IN_DOUBT and self._ends_in_doubt:
            return "Not sent again since"
        reason = self.delivery.get_redelivery_display()
        return f"{'Back in the mailbox' if self.is_fetched else 'Sent again'}: {reason}"

    @property
    def _ends_in_doubt(self) -> bool:
        """True if nothing was sent after the lost attempt."""
        is_last_lost = bool(self.attempts) and self.attempts[0].attempt.outcome == OutcomeClass.LOST
        return self.delivery.status not in OPEN and is_last_lost

    @property
    def next_attempt_of(self) -> str:
        return attempts_of(self.delivery, following=1)


def place_of(delivery: Delivery, *, now: datetime) -> str:
    """Return `ShownDelivery.place`; empty for settled deliveries and for those not in a mailbox."""
    if delivery.status not in OPEN or delivery.subscription.mode != Mode.PULL:
        return ""
    if delivery.lease_expires_at is not None:
        return "LEASED" if delivery.lease_expires_at > now else "LAPSED"
    return (
        "LATER"
        if delivery.next_attempt_at is not None and delivery.next_attempt_at > now
        else "AVAILABLE"
    )


def attempts_of(delivery: Delivery, *, following: int = 0) -> str:
    """Return the number of counted attempts, such as `3 of 13`; without a limit, the number.

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


def with_attempts(
    deliveries: Sequence[Delivery], *, limit: int, may_see: bool = False
) -> list[ShownDelivery]:
    """Add to each delivery the newest attempts up to a limit, with a single query for all.

    With `may_see` also the payload: then load the bodies and outputs of scripts.
    """
    attempts: dict[int, list[ShownAttempt]] = defaultdict(list)
    newest = Attempt.objects.filter(delivery__in=deliveries).newest(limit).order_by("-number")
    of = {delivery.pk: delivery for delivery in deliveries}
    for attempt in newest:
        attempts[attempt.delivery_id].append(_shown(attempt, of[attempt.delivery_id]))
    next_tries = next_try.next_tries(deliveries)
    bodies = _Bodies() if may_see else None
    return [
        ShownDelivery(
            delivery=row,
            attempts=attempts[row.pk],
            next_try=next_tries.get(row.pk),
            **(bodies.of(row) if bodies else {}),
        )
        for row in deliveries
    ]


class _Bodies:
    """The payloads of deliveries; equal outputs of scripts are compared once."""

    def __init__(self) -> None:
        self._published: dict[int, Payload] = {}
        self._compared: dict[tuple[int, bytes], tuple[Payload, list[DifferenceLine] | None]] = {}

    def of(self, row: Delivery) -> dict[str, Any]:
        published = self._published.get(row.message_id)
        if published is None:
            published = self._published[row.message_id] = payload_of(bytes(row.message.body))
        made = script_output(row)
        if made is None or made.body is None:
            return {"body": _beginning(published)}
        sent, found = self._compare(row, bytes(made.body), published)
        return {"body": _beginning(sent), "sent": sent, "difference": found}

    def _compare(
        self, row: Delivery, body: bytes, published: Payload
    ) -> tuple[Payload, list[DifferenceLine] | None]:
        key = row.message_id, body
        if key not in self._compared:
            sent = payload_of(body)
            is_compared = len(self._compared) < COMPARED
            self._compared[key] = sent, difference(published, sent) if is_compared else None
        return self._compared[key]


def _beginning(body: Payload) -> str:
    if body.is_binary:
        return f"({body.size:,} bytes that are no text)"
    if len(body.text) <= BEGINNING:
        return body.text
    return f"{body.text[:BEGINNING]}…\n(the first {BEGINNING} characters)"


def _shown(attempt: Attempt, delivery: Delivery) -> ShownAttempt:
    excerpt = bytes(attempt.excerpt)
    is_fetched = delivery.subscription.mode == Mode.PULL
    return ShownAttempt(
        attempt=attempt,
        answer=payload_of(excerpt) if excerpt else None,
        request=None if is_fetched else sent_request(delivery, attempt=attempt),
    )
