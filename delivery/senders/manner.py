"""How a lane of independent messages is served, by its kind and its subscriber's wish."""

from dataclasses import dataclass

from delivery.models import LaneKind
from delivery.senders.health import PLACES
from delivery.senders.lane import Pace

# Attempts of one lane at once, to however many places: each has a socket, and stands in the run.
MOST_UNDER_WAY = 1_000
# Of what may be held of a lane, a place gets no more than if there were so many of them.
LEAST_PLACES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What reads the lane, and how many attempts are under way at once: at an endpoint, and in all.

    `spares`: an endpoint that is down is left alone for a while; `tells`: people see then that the lane is
    BLOCKED. `moves`: what its policy sends to the retry lane goes there. `divides`: what is under way is
    divided among the endpoints that have something ready. At most `capacity` are read at a time, when no more
    than `refill_level` are left, if those are given.
    """

    statement: str
    places: int = PLACES
    most: int = MOST_UNDER_WAY
    least_places: int = LEAST_PLACES
    spares: bool = True
    tells: bool = False
    moves: bool = False
    divides: bool = False
    capacity: int | None = None
    refill_level: int | None = None

    def rows(self, of_a_lane: int) -> int:
        """How much is read at a time, if a lane may hold so many."""
        return of_a_lane // 4 if self.capacity is None else min(of_a_lane, self.capacity)

    def level(self, rows: int) -> int:
        """How few are left when the next are read."""
        return rows // 2 if self.refill_level is None else min(rows // 2, self.refill_level)


# Fresh messages go first: beside them the retry lane gives an endpoint one message at a time. Each has a time
# of its own there, so an endpoint is not spared beyond that.
_MANNERS = {
    LaneKind.QUEUE: Manner(statement="read_groups"),
    LaneKind.RETRY: Manner(statement="read_due", places=1, spares=False),
    LaneKind.CALLBACK: Manner(statement="read_due"),
}


def manner_of(kind: str, pace: Pace) -> Manner:
    """Return how a lane of that kind is served; a subscriber's own is a CONCURRENT one.

    What failed of such a one goes to the retry lane, if its policy says so, as it would of a SERIAL one: its
    schedule is kept there though the subscriber becomes SERIAL, whose sender takes what stands in its lane in
    order, without asking when it is due. So an endpoint may get one retry at a time beside its
    `max_in_flight`.
    """
    if kind != LaneKind.TOPIC:
        return _MANNERS[LaneKind(kind)]
    most = pace.max_in_flight or 1
    return Manner(
        statement="read_due",
        places=most,
        most=most,
        least_places=1,
        tells=True,
        moves=True,
        divides=True,
        capacity=pace.max_queued_to_send,
        refill_level=pace.refill_level,
    )
