"""The journal: entries recorded in the transaction of the reported change."""

from delivery.models import JournalEntry, JournalKind


def record_entry(
    kind: JournalKind,
    text: str,
    *,
    actor: str = "",
    delivery_id: int | None = None,
    subscription_id: int | None = None,
    lane_id: int | None = None,
) -> JournalEntry:
    """Add an entry; call it in the reported transaction."""
    return JournalEntry.objects.create(
        kind=kind,
        text=text,
        actor=actor,
        delivery_id=delivery_id,
        subscription_id=subscription_id,
        lane_id=lane_id,
    )


def record_of_message(kind: JournalKind, text: str, *, actor: str, message_id: int) -> JournalEntry:
    return JournalEntry.objects.create(kind=kind, text=text, actor=actor, message_id=message_id)
