"""A request as a receiver got it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """`at` is on the monotonic clock; `tries` counts the requests with this webhook-id so far.

    `status` is the receiver's status; None if it does not answer. `port` is the client's.
    """

    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    tries: int
    status: int | None = None
    port: int = 0

    @property
    def id(self) -> str:
        return self.headers.get("webhook-id", "")

    @property
    def attempt(self) -> int:
        return int(self.headers.get("inturn-attempt", "0"))

    @property
    def delivery(self) -> int:
        return int(self.headers.get("inturn-delivery", "0"))

    @property
    def redelivery(self) -> str | None:
        return self.headers.get("inturn-redelivery")

    @property
    def was_accepted(self) -> bool:
        return self.status is not None and self.status // 100 == 2
