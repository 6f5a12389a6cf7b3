"""The history archived by `bench history`, and the ways to start over."""

import shutil
from pathlib import Path

from django.conf import settings
from django.db import connection

# Settle every delivery: otherwise the measured senders would send the open deliveries.
_SETTLE = """
    UPDATE delivery_delivery delivery
    SET status = 'CANCELLED', settled_at = message.published_at + interval '1 second',
        skipped = false, next_attempt_at = NULL, leased_at = NULL, lease_token = NULL,
        lease_expires_at = NULL
    FROM delivery_message message
    WHERE message.id = delivery.message_id AND delivery.settled_at IS NULL
"""
_FREE_LANES = """
    UPDATE delivery_lane
    SET state = 'IDLE', reason = '', delivery_id = NULL, failures = 0, next_try_at = NULL,
        run_ids = '{}', run_attempts = '{}'
"""
# The columns written by a publication and not by the generator: without them there is nothing to
# verify. Each message follows the previous, and all precede the first real transaction.
_ACCEPT = """
    UPDATE delivery_message message
    SET owed = coalesce(owing.deliveries, 0), transaction_id = accepted.place,
        seen_before = accepted.place
    FROM (
        SELECT id, row_number() OVER (ORDER BY published_at, id) - 1000000000 AS place
        FROM delivery_message
    ) AS accepted
    LEFT JOIN (
        SELECT message_id, count(*) AS deliveries FROM delivery_delivery GROUP BY message_id
    ) AS owing ON owing.message_id = accepted.id
    WHERE message.id = accepted.id
"""
# The generator dates the attempts of a stopping delivery for the console's display, some before
# their message's publication: date those at the publication.
_TRY_IN_TURN = """
    UPDATE delivery_loggedattempt attempt
    SET started_at = message.published_at
    FROM delivery_delivery delivery
    JOIN delivery_message message ON message.id = delivery.message_id
    WHERE delivery.id = attempt.delivery_id AND attempt.started_at < message.published_at
"""
_FORGET_ARCHIVE = (
    "TRUNCATE delivery_archivechunk, delivery_archivefile, delivery_archived, "
    "delivery_historyhour CASCADE"
)
_FORGET_PROOFS = "UPDATE delivery_pipelinerun SET result = result - 'proof' WHERE step = 'VERIFY'"
_FORGET_ROLLUP = "UPDATE delivery_archivechunk SET is_rolled_up = false"
# The generator writes the history at once, and all of it precedes the end of the export.
_REST = ("VACUUM (FULL) delivery_message", "VACUUM (ANALYZE)", "CHECKPOINT")


def make_whole() -> None:
    with connection.cursor() as cursor:
        # These statements read whole tables; the product's settings favour indexes.
        cursor.execute(
            "SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on"
        )
        for statement in (_SETTLE, _FREE_LANES, _ACCEPT, _TRY_IN_TURN, *_REST):
            cursor.execute(statement)
    connection.close()


def forget_archive() -> None:
    """Make the next export begin with the first message."""
    _execute(_FORGET_ARCHIVE, "CHECKPOINT")
    shutil.rmtree(Path(settings.ENVIRONMENT.home, "archive"), ignore_errors=True)


def forget_results() -> None:
    """Make the next rollup compute all hours, and the next verify check everything."""
    _execute("TRUNCATE delivery_historyhour", _FORGET_ROLLUP, _FORGET_PROOFS)


def is_archived() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM delivery_archivechunk WHERE state = 'DONE')")
        return bool(cursor.fetchone() == (True,))


def count_attempts() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM delivery_attempt")
        (count,) = cursor.fetchone() or (0,)
    return int(count)


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
