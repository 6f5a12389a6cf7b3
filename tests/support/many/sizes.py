"""How much a generated history has."""

from dataclasses import dataclass

# What the numbers of issue 5 are promised for.
FULL = 5_000_000
DAYS = 14
# Deliveries that a message has, by `sql/deliveries.sql`: a little less than there, so that none is missing.
DELIVERIES_A_MESSAGE = 2.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """`deliveries` are at least that many; the configuration is that of the full history, or a smaller part."""

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
    """Return what belongs to so many deliveries; of a small history the configuration is small, too."""
    messages = deliveries / DELIVERIES_A_MESSAGE
    event_types = max(10, min(200, 200 * deliveries // FULL))
    return Sizes(
        deliveries=deliveries,
        # Of few messages chance may give fewer to each.
        messages=int(messages + 2 * messages**0.5) + 1,
        event_types=event_types,
        publishers=max(4, event_types // 4),
        subscribers=5 * event_types,
        journal=deliveries // 10,
        changes=max(20, deliveries // 500),
    )
