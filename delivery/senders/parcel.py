"""Plain values for one attempt: the message and everything needed to send it to its endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from delivery.senders.run_result import RunResult
from delivery.verdict import Rules, Tries
from subscriptions.scripts.jobs import ScriptFault

# The unit that waits after a failed attempt: a subscription, the scheme, host and port of a URL, or
# the whole lane.
Key = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """What the subscription's script has added to a parcel; the body is in the parcel.

    With a `fault` the script has made nothing, and nothing is sent.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
    fault: ScriptFault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A delivery as the lane's sender has read it.

    `attempts` were recorded before; `attempts_before` of these do not count. `callback_id`: of the
    callback that the accepting receiver may answer to. `url`: where the parcel goes instead of the
    endpoint's URL; `origin` is the server of this URL. `deadline`: when to stop sending, in seconds
    since boot. `due_at`: when the attempt was due, by the same clock; read only for traces.
    `server_started_at`: of a VOLATILE delivery, which is sent only under this start of the database
    server. `headers`: of the message, read only if the subscription forwards any, or if the message
    was published with `ReplyTo` or is a reply.
    """

    delivery_id: int
    subscription_id: int
    message_id: int
    attempts: int
    attempts_before: int
    is_skipped: bool
    redelivery: str
    event: str
    content_type: str
    body: bytes
    callback_id: int | None = None
    url: str = ""
    origin: str = ""
    seconds_since_first: float | None = None
    deadline: float | None = None
    due_at: float | None = None
    server_started_at: datetime | None = None
    replay_id: int | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    transformation: Transformation | None = None

    @property
    def is_volatile(self) -> bool:
        return self.server_started_at is not None

    @property
    def tries(self) -> Tries:
        """The count of failures if the attempt to be judged now failed."""
        return Tries(
            self.attempts - self.attempts_before + 1, self.seconds_since_first, self.is_volatile
        )

    @property
    def key(self) -> Key:
        """The key of the endpoint: the subscription, or the server of `url`."""
        return self.origin or self.subscription_id


@dataclass(slots=True, eq=False)
class Group:
    """A QUEUE message, and the deliveries of a queue group that may still be tried.

    A delivery outside a queue is a group of its own, without a number. `generation`: of the lane,
    at the time of the read. `run_result`: of the whole run; only for a lane that records its run
    ahead.
    """

    message_id: int
    number: int | None
    left: list[Parcel]
    generation: int = 0
    run_result: RunResult | None = None

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(parcel.key for parcel in self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A subscription as a sender needs it.

    `is_active`: neither the subscription nor its subscriber nor all sending is held.
    `is_held_whole`: the subscriber is not ACTIVE, or all sending is HELD. `is_disabled`: the
    circuit breaker blocks attempts at the URL. `fault`: a fault on our side prevents sending; the
    lane then waits, and no attempt is made. `version` differs after any change. `headers`:
    configured, including credentials; `forward_headers`: the patterns of message headers to
    forward. `script_version`: 0 if the subscription never had a script.
    """

    subscription_id: int
    lane_id: int
    version: str
    is_active: bool
    is_disabled: bool
    method: str
    url: str
    headers: dict[str, str] = field(repr=False)
    signing_keys: tuple[bytes, ...] = field(repr=False)
    timeout_seconds: float
    rules: Rules
    probe_url: str = ""
    forward_headers: tuple[str, ...] = ()
    forwards_authorization: bool = False
    fault: str = ""
    is_held_whole: bool = False
    script: str = field(default="", repr=False)
    script_version: int = 0
