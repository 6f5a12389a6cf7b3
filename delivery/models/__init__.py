"""Messages, deliveries, attempts, lanes and the journal."""

from delivery.models.attempt import Attempt
from delivery.models.callback import Callback
from delivery.models.dedup import DedupKey
from delivery.models.delivery import Delivery
from delivery.models.failure_notice import FailureNotice
from delivery.models.idempotency import IdempotencyKey
from delivery.models.journal import JournalEntry, JournalKind
from delivery.models.lane import Lane, LaneKind
from delivery.models.mailbox import MailboxRate
from delivery.models.message import Message
from delivery.models.resubmission import Resubmission, ResubmissionState
from delivery.models.retention import Archived, RetentionRun, RetentionState
from delivery.models.url_health import UrlHealth, UrlState
from delivery.states import LaneState, OutcomeClass, Status

__all__ = [
    "Archived",
    "Attempt",
    "Callback",
    "DedupKey",
    "Delivery",
    "FailureNotice",
    "IdempotencyKey",
    "JournalEntry",
    "JournalKind",
    "Lane",
    "LaneKind",
    "LaneState",
    "MailboxRate",
    "Message",
    "OutcomeClass",
    "Resubmission",
    "ResubmissionState",
    "RetentionRun",
    "RetentionState",
    "Status",
    "UrlHealth",
    "UrlState",
]
