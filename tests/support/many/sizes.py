"""The number of rows of each kind in a generated history."""

from dataclasses import dataclass

# The size for which the numbers of issue 5 are promised.
FULL = 5_000_000
DAYS = 14
# Deliveries per message in `sql/deliveries.sql`, a little less than there: none will be missing.
DELIVERIES_A_MESSAGE = 2.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Row counts: at least as many `deliveries`; the configuration is full-size or smaller."""

    deliveries: int
    messages: int
    event_types: int
    publishers: int
    subscribers: int
    journal: int
    changes: int

    @property
    def subscriptions(self) -> int:
        return 3 * self.subscribers


def sizes_of(deliveries: int) -> Sizes:
    """Return the sizes for so many deliveries: a small history has a small configuration."""
    messages = deliveries / DELIVERIES_A_MESSAGE
    event_types = max(10, min(200, 200 * deliveries // FULL))
    return Sizes(
        deliveries=deliveries,
        # With few messages, chance may give fewer deliveries to each.
        messages=int(messages + 2 * messages**0.5) + 1,
        event_types=event_types,
        publishers=max(4, event_types // 4),
        subscribers=5 * event_types,
        journal=deliveries // 10,
        changes=max(20, deliveries // 500),
    )
