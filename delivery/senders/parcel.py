"""Plain values for one attempt: what is sent, and what must be known of where it goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from delivery.senders.batch import RunBatch
from delivery.verdict import Rules, Tries

# What waits when an attempt fails: a subscription, the scheme, host and port of a URL, or a whole lane.
Key = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """What the subscription's script adds to a parcel, whose body it has made; with a `fault` it has made nothing, and nothing is sent."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One delivery as its lane's sender read it; `attempts` were recorded before, and `attempts_before` of them do not count.

    `callback_id` is the callback that whoever takes it may answer to. With a `url`, of that `origin`, it goes
    there instead of to the endpoint's. After the `deadline`, in seconds since boot, it is not sent any more;
    a VOLATILE one not under another database server than that which `server_started_at` then. `headers` are the
    message's, and were read only if the subscription sends some along.
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
    server_started_at: datetime | None = None
    replay_id: int | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    transformation: Transformation | None = None

    @property
    def is_volatile(self) -> bool:
        return self.server_started_at is not None

    @property
    def tries(self) -> Tries:
        """How often it failed, if the attempt to be judged now did."""
        return Tries(self.attempts - self.attempts_before + 1, self.seconds_since_first, self.is_volatile)

    @property
    def place(self) -> Key:
        """Where it goes, as far as health is concerned: the subscription, or the server of its own `url`."""
        return self.origin or self.subscription_id


@dataclass(slots=True, eq=False)
class Group:
    """One QUEUE message and those deliveries of one group of it that may still be tried.

    A delivery that is none of a queue is a group of its own, without a number. `generation` is its lane's when it was
    read, `batch` the run of an ordered lane that it belongs to.
    """

    message_id: int
    number: int | None
    left: list[Parcel]
    generation: int = 0
    batch: RunBatch | None = None

    @property
    def places(self) -> frozenset[Key]:
        return frozenset(parcel.place for parcel in self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A subscription as a sender must know it.

    `is_active`: it is not held, by itself or as a whole. `is_held_whole`: its subscriber is not ACTIVE, or all sending is HELD.
    `is_disabled`: the circuit breaker keeps attempts from its URL. `fault` tells why nothing can be sent to
    it, a fault on our side: the lane then waits, and no attempt is made. `version` differs after any change.
    `headers` are the subscription's own and its credentials, `forward_headers` the patterns of those of messages. Without a
    `script` its `script_version` says whether there was one.
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
