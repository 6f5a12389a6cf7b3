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
from delivery.models.payload_view import PayloadView
from delivery.models.resubmission import BulkVerb, Resubmission, ResubmissionState
from delivery.models.retention import Archived, RetentionRun, RetentionState
from delivery.models.traffic import SubscriptionTraffic, TrafficMark, TrafficMinute
from delivery.models.url_health import UrlHealth, UrlState
from delivery.states import LaneState, OutcomeClass, Status

__all__ = [
    "Archived",
    "Attempt",
    "BulkVerb",
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
    "PayloadView",
    "Resubmission",
    "ResubmissionState",
    "RetentionRun",
    "RetentionState",
    "Status",
    "SubscriptionTraffic",
    "TrafficMark",
    "TrafficMinute",
    "UrlHealth",
    "UrlState",
]
