"""Matches of SHADOW subscriptions: recorded with the message, never sent.

The record is a delivery: `accept.sql` stores it as PENDING like every other, and a second statement
of the same transaction settles it as SHADOW. So no sender and no mailbox ever sees it open, a crash
before the commit leaves neither, and storing costs messages without a SHADOW match nothing. It is in
no lane and no QUEUE group, and takes no dedup key. Lists, explain, archive, verify and retention have
it as a settled delivery; it is not resubmitted. When its subscription becomes ACTIVE, later messages
are sent; earlier ones are sent by a replay. A message that was matched while its subscription was ACTIVE
and stored after the change is PENDING, and waits like the subscription's earlier deliveries.
"""

from collections.abc import Sequence

from delivery.database import queries
from subscriptions.matching.match import Candidate


def settle_matches(matches: Sequence[tuple[int, Candidate]]) -> None:
    """Settle these deliveries of messages just stored; call it in their transaction."""
    if matches:
        queries.execute(
            "settle_shadow",
            {
                "message": [message_id for message_id, _ in matches],
                "subscription": [match.subscription_id for _, match in matches],
            },
        )
