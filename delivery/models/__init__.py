"""Messages, deliveries, attempts, lanes and the journal."""

from delivery.models.attempt import Attempt
from delivery.models.delivery import Delivery
from delivery.models.idempotency import IdempotencyKey
from delivery.models.journal import JournalEntry, JournalKind
from delivery.models.lane import Lane, LaneKind
from delivery.models.message import Message
from delivery.states import LaneState, OutcomeClass, Status

__all__ = [
    "Attempt",
    "Delivery",
    "IdempotencyKey",
    "JournalEntry",
    "JournalKind",
    "Lane",
    "LaneKind",
    "LaneState",
    "Message",
    "OutcomeClass",
    "Status",
]
