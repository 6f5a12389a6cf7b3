"""Matches of SHADOW subscriptions: recorded with the message, never sent.

The record is a delivery: `accept.sql` stores it as PENDING like every other, and a second statement
of the same transaction settles it as SHADOW. So no sender and no mailbox ever sees it open, a crash
before the commit leaves neither, and storing costs messages without a SHADOW match nothing. It is
in no lane and no QUEUE group, and takes no dedup key. Lists, explain, archive, verify and retention
have it as a settled delivery; it is not resubmitted. The script does not run: scripts run before an
attempt.

A message has one delivery for each match, by the status read at matching. Changes of the status:

| from | to | a message matched before, stored after the change | PENDING deliveries |
|---|---|---|---|
| ACTIVE, HELD | SHADOW | is PENDING | wait; one that is being sent gets its outcome |
| SHADOW | ACTIVE | is SHADOW | are sent in order, or cancelled |
| SHADOW | HELD | is SHADOW | wait |
| SHADOW | INACTIVE | is SHADOW | wait |
| INACTIVE | SHADOW | is not recorded | wait |

So the change loses no match and sends no SHADOW delivery: a message published around it is in the
list with either status, and a replay sends SHADOW deliveries. Senders stop within two seconds, as
for INACTIVE: they read `subscriptions_standing`, and `fetch.sql` reads the status ACTIVE. PENDING
deliveries of a SHADOW subscription expire as any others. A SHADOW subscription of an INACTIVE
subscriber matches nothing; of a HELD subscription, or while all sending is HELD, it records.
"""

from collections.abc import Sequence

from delivery.database import queries
from subscriptions.matching.candidates import Candidate


def settle_matches(matches: Sequence[tuple[int, Candidate]]) -> None:
    """Settle these deliveries of messages just stored; call it in their transaction."""
    if matches:
        queries.execute_statement(
            "settle_shadow",
            {
                "message": [message_id for message_id, _ in matches],
                "subscription": [match.subscription_id for _, match in matches],
            },
        )
