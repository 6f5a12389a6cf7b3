"""The columns of a report and their meaning: a row for each settlement of a delivery."""

from delivery.history.schemas import Column, Table

REPORT = Table(
    "report",
    key=("delivery_id", "settled_at"),
    at="settled_at",
    columns=(
        Column("settled_at", "timestamp", "when it was settled, UTC"),
        Column(
            "delivery_id", "bigint", "the id of the delivery, which the header inturn-delivery has"
        ),
        Column("status", "string", "as it was settled then"),
        Column("reason", "string", "the last attempt's outcome, or the deciding person, in words"),
        Column("message_id", "bigint", "the number in msg_…, which the header webhook-id has"),
        Column("published_at", "timestamp", "when its message was accepted, UTC"),
        Column("event_type", "string"),
        Column("kind", "string", "TOPIC, QUEUE or SYNC"),
        Column("publisher", "string", "empty: Inturn itself", is_nullable=True),
        Column("content_type", "string", "of the body", is_nullable=True),
        Column(
            "destination",
            "string",
            "its recipient; empty: all matching subscriptions",
            is_nullable=True,
        ),
        Column(
            "edited_from",
            "bigint",
            "the message that a person edited and sent again",
            is_nullable=True,
        ),
        Column("subscriber", "string", "as they were called when it was archived"),
        Column("subscription", "string"),
        Column("subscription_id", "bigint"),
        Column("mode", "string", "PUSH or PULL"),
        Column("endpoint", "string", "where it went, without its secrets; empty: into a mailbox"),
        Column(
            "queue_group",
            "int",
            "of a QUEUE message: of each group one endpoint gets it",
            is_nullable=True,
        ),
        Column("callback_id", "bigint", "it went to a callback's URL", is_nullable=True),
        Column(
            "replay_id",
            "bigint",
            "the replay that made it; empty: its publication",
            is_nullable=True,
        ),
        Column("redelivery", "string", "why it was sent again: in-doubt or resubmitted"),
        Column("body_bytes", "bigint"),
        Column("attempts", "int", "how often it was tried in all, up to this settlement"),
        Column("attempts_before", "int", "of these before a person sent it again"),
        Column(
            "recorded_attempts",
            "int",
            "of these since the settlement before, with the figures that follow",
        ),
        Column("first_attempt_at", "timestamp", "", is_nullable=True),
        Column("last_attempt_at", "timestamp", "", is_nullable=True),
        Column(
            "last_outcome",
            "string",
            "outcome of the last attempt: SUCCESS, SERVER_ERROR, …",
            is_nullable=True,
        ),
        Column("last_status_code", "int", "the endpoint's answer to it", is_nullable=True),
        Column("last_error", "string", "", is_nullable=True),
        Column("last_duration_ms", "int", "how long it took", is_nullable=True),
        Column("receive_count", "int", "how often it was fetched from a mailbox"),
    ),
)

# With bodies; in Parquet these are the exact bytes.
IN_FULL = (
    Column("headers", "string", "JSON: text by lower-case name", is_nullable=True),
    Column("body", "binary", "the exact bytes", is_nullable=True),
)
# In CSV, which has only text.
AS_TEXT = (
    IN_FULL[0],
    Column("body", "string", "as text, if it is UTF-8", is_nullable=True),
    Column("body_base64", "string", "any other", is_nullable=True),
)
