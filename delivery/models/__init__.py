"""Messages, deliveries, attempts, lanes and the journal."""

from delivery.models.archive import (
    ArchiveChunk,
    ArchiveFile,
    ArchiveIdentity,
    ChunkKind,
    ChunkState,
    EarlierSettlement,
)
from delivery.models.attempt import Attempt, LoggedAttempt
from delivery.models.callback import Callback
from delivery.models.dedup import DedupKey
from delivery.models.delivery import Delivery, delivery_id
from delivery.models.endpoint_health import EndpointHealth, EndpointSummary
from delivery.models.failure_notice import FailureNotice
from delivery.models.history_hour import HistoryHour
from delivery.models.idempotency import IdempotencyKey
from delivery.models.incident import (
    AlertChannel,
    Incident,
    IncidentAlert,
    IncidentDelivery,
    IncidentKind,
    IncidentRule,
    IncidentSeverity,
    IncidentState,
    PendingFailure,
)
from delivery.models.join_key import JoinKey
from delivery.models.journal import JournalEntry, JournalKind
from delivery.models.lane import Lane, LaneKind
from delivery.models.mailbox import MailboxRate
from delivery.models.message import Message
from delivery.models.message_range import MessageRange
from delivery.models.old_broker import ImportedKey, MessageReservation
from delivery.models.own_rows import OwnDelivery, OwnMessage
from delivery.models.payload_view import PayloadView
from delivery.models.pipeline import (
    RUN_ENDED,
    RUN_OPEN,
    SOLE_STEPS,
    Finding,
    PipelineRun,
    PipelineSchedule,
    RunState,
    Step,
)
from delivery.models.receiver import (
    BuiltInReceiver,
    ReceivedRequest,
    ReceiverAnswer,
    SignatureCheck,
)
from delivery.models.replay import Replay, ReplayItem, ReplayState
from delivery.models.reply import Reply
from delivery.models.resubmission import BulkVerb, Resubmission, ResubmissionState
from delivery.models.retention import Archived, RetentionRun, RetentionState
from delivery.models.script_output import ScriptOutput
from delivery.models.shard import Shard
from delivery.models.traffic import SubscriptionTraffic, TrafficMark, TrafficMinute
from delivery.models.url_health import UrlHealth, UrlState
from delivery.states import EndpointState, LaneState, OutcomeClass, Status

__all__ = [
    "RUN_ENDED",
    "RUN_OPEN",
    "SOLE_STEPS",
    "AlertChannel",
    "ArchiveChunk",
    "ArchiveFile",
    "ArchiveIdentity",
    "Archived",
    "Attempt",
    "BuiltInReceiver",
    "BulkVerb",
    "Callback",
    "ChunkKind",
    "ChunkState",
    "DedupKey",
    "Delivery",
    "EarlierSettlement",
    "EndpointHealth",
    "EndpointState",
    "EndpointSummary",
    "FailureNotice",
    "Finding",
    "HistoryHour",
    "IdempotencyKey",
    "ImportedKey",
    "Incident",
    "IncidentAlert",
    "IncidentDelivery",
    "IncidentKind",
    "IncidentRule",
    "IncidentSeverity",
    "IncidentState",
    "JoinKey",
    "JournalEntry",
    "JournalKind",
    "Lane",
    "LaneKind",
    "LaneState",
    "LoggedAttempt",
    "MailboxRate",
    "Message",
    "MessageRange",
    "MessageReservation",
    "OutcomeClass",
    "OwnDelivery",
    "OwnMessage",
    "PayloadView",
    "PendingFailure",
    "PipelineRun",
    "PipelineSchedule",
    "ReceivedRequest",
    "ReceiverAnswer",
    "Replay",
    "ReplayItem",
    "ReplayState",
    "Reply",
    "Resubmission",
    "ResubmissionState",
    "RetentionRun",
    "RetentionState",
    "RunState",
    "ScriptOutput",
    "Shard",
    "SignatureCheck",
    "Status",
    "Step",
    "SubscriptionTraffic",
    "TrafficMark",
    "TrafficMinute",
    "UrlHealth",
    "UrlState",
    "delivery_id",
]
