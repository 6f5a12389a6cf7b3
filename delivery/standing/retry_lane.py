"""The retry lane's backlog: the size, the number due, and the time of the next."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from delivery.database.queries import named_row
from delivery.standing.bounded_counts import WAITING_LIMIT, Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """`due` may be tried now; the next of the others is due at `next_at`."""

    waiting: Bounded
    due: Bounded
    next_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLane:
    """The whole retry lane.

    `held` counts deliveries of held subscriptions (HELD or INACTIVE) and of DISABLED or FROZEN
    URLs.
    """

    retries: Retries
    held: Bounded
    subscriptions: int
    disabled_urls: int
    frozen_urls: int

    @property
    def is_any_url_stopped(self) -> bool:
        return bool(self.disabled_urls or self.frozen_urls)


def read_retry_lane() -> RetryLane:
    row = named_row("retry_lane", {"limit": WAITING_LIMIT})
    return RetryLane(
        retries=_retries(row),
        held=Bounded(row["held"], WAITING_LIMIT),
        subscriptions=row["subscriptions"],
        disabled_urls=row["disabled_urls"],
        frozen_urls=row["frozen_urls"],
    )


def retries_of_subscription(subscription_id: int) -> Retries:
    return _retries(
        named_row(
            "retries_of_subscription", {"subscription": subscription_id, "limit": WAITING_LIMIT}
        )
    )


def _retries(row: dict[str, Any]) -> Retries:
    return Retries(
        waiting=Bounded(row["waiting"], WAITING_LIMIT),
        due=Bounded(row["due"], WAITING_LIMIT),
        next_at=row["next_at"],
    )
