"""Plain values for one attempt: the message and everything needed to send it to its endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from delivery.senders.run_result import RunResult
from delivery.verdict import Rules, Tries
from subscriptions.scripts.jobs import ScriptFault

# The unit that waits after a failed attempt: a subscription, the scheme, host and port of a URL, or
# a whole lane.
Key = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """The additions of the subscription's script to a parcel, whose body it has made.

    With a `fault` it has made nothing, and nothing is sent.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
    fault: ScriptFault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One delivery as its lane's sender read it.

    `attempts` were recorded before, and `attempts_before` of them do not count. `callback_id` is
    the callback that the accepting receiver may answer to. A parcel with a `url`, whose server is
    `origin`, goes there instead of to the endpoint's URL. It is not sent after the `deadline`, in
    seconds since boot. By the same clock its attempt was due at `due_at`, which is read only for
    traces. A VOLATILE one is sent only under the database server start recorded in
    `server_started_at`. `headers` are the message's, read only if the subscription forwards
    some, or if the message was published with `ReplyTo` or is a reply.
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
        """The key of its health: the subscription, or the server of its own `url`."""
        return self.origin or self.subscription_id


@dataclass(slots=True, eq=False)
class Group:
    """One QUEUE message and the deliveries of one of its groups that may still be tried.

    A delivery outside a queue is a group of its own, without a number. `generation` is its lane's
    when it was read, `run_result` that of the run of an ordered lane that it belongs to.
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

    `is_active`: it is not held, by itself or as a whole. `is_held_whole`: its subscriber is not
    ACTIVE, or all sending is HELD. `is_disabled`: the circuit breaker blocks attempts at its URL.
    `fault` is a fault on our side that prevents sending: the lane then waits, and no attempt is
    made. `version` differs after any change. `headers` are the subscription's own with its
    credentials, `forward_headers` the patterns of message headers to forward. Without a `script`
    the `script_version` says whether there was one.
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
