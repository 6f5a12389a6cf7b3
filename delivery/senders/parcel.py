"""Plain values for one attempt: what is sent, and what must be known of where it goes."""

from dataclasses import dataclass, field

from delivery.verdict import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One delivery as its lane's sender read it; `attempts` were recorded before."""

    delivery_id: int
    subscription_id: int
    message_id: int
    attempts: int
    is_skipped: bool
    redelivery: str
    event: str
    content_type: str
    body: bytes


@dataclass(slots=True, eq=False)
class Group:
    """One QUEUE message and those deliveries of one group of it that may still be tried."""

    message_id: int
    number: int
    left: list[Parcel]

    @property
    def endpoints(self) -> frozenset[int]:
        return frozenset(parcel.subscription_id for parcel in self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A subscription as a sender must know it.

    `fault` tells why nothing can be sent to it, a fault on our side: the lane then
    waits, and no attempt is made. `version` differs after any change. `headers` are the subscription's own and its credentials.
    """

    subscription_id: int
    lane_id: int
    version: str
    is_active: bool
    method: str
    url: str
    headers: dict[str, str] = field(repr=False)
    signing_keys: tuple[bytes, ...] = field(repr=False)
    timeout_seconds: float
    rules: Rules
    fault: str = ""
