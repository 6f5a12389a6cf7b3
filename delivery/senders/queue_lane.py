"""A lane of independent messages in memory: what is read, attempts that are under way, endpoints' health.

Such are those of the queue senders, the retry lane and the callback lane.
"""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery.models import LaneKind
from delivery.senders.entries import Run
from delivery.senders.health import PLACES, Health
from delivery.senders.lane import SLOW_SECONDS, Lane
from delivery.senders.parcel import Endpoint, Group, Parcel


@dataclass(frozen=True, slots=True)
class Manner:
    """How a kind of lane is served: what reads it, how many attempts an endpoint gets at once.

    `spares`: an endpoint that is down is left alone for a while.
    """

    statement: str
    places: int = PLACES
    spares: bool = True


# Fresh messages go first: beside them the retry lane gives an endpoint one message at a time. Each has a time of
# its own there, so an endpoint is not spared beyond that.
MANNERS = {
    LaneKind.QUEUE: Manner("read_groups"),
    LaneKind.RETRY: Manner("read_due", places=1, spares=False),
    LaneKind.CALLBACK: Manner("read_due"),
}


@dataclass(slots=True)
class UnderWay:
    """An attempt that is to be recorded, or is being made `since` a moment of the monotonic clock."""

    place: int | str
    attempts: int
    since: float | None = None
    task: asyncio.Task[None] | None = field(default_factory=asyncio.current_task)

    def is_older(self, moment: float) -> bool:
        return self.since is not None and self.since < moment


class QueueLane(Lane):
    """`changed` is set whenever there may be something to do: news, a place that is free again, a pause that is over.

    While an endpoint hangs as the stint ends, the lane is parked: it goes on, but leaves
    that endpoint alone, until nothing hangs.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row["id"])
        self.manner = MANNERS[LaneKind(row["kind"])]
        self.changed = asyncio.Event()
        self.health: dict[int | str, Health] = {}
        self.under_way: dict[int, UnderWay] = {}
        self.has_more = False
        self._ready: dict[frozenset[int | str], deque[Group]] = {}
        self._held: dict[int, Group] = {}
        self._turns = itertools.count(1)
        self._is_parked = False

    def is_hanging(self, *, since: float) -> bool:
        return any(attempt.is_older(since) for attempt in self.under_way.values())

    def cut_off(self) -> None:
        for attempt in list(self.under_way.values()):
            if attempt.since is not None and attempt.task is not None:
                attempt.task.cancel()

    def wake(self) -> None:
        super().wake()
        self.changed.set()

    def concerns(self, endpoint: Endpoint) -> bool:
        return endpoint.subscription_id in self.health

    def park(self) -> None:
        self._is_parked = True

    def run(self) -> Run:
        """What is to be recorded: what is under way, or about to be."""
        return Run(
            lane_id=self.id,
            ids=tuple(self.under_way),
            attempts=tuple(attempt.attempts for attempt in self.under_way.values()),
        )

    def health_of(self, parcel: Parcel) -> Health:
        return self._health_at(parcel.place)

    def down(self) -> list[int | str]:
        """The endpoints that are to be left alone now."""
        return [place for place, health in self.health.items() if health.is_down()]

    @property
    def is_sending(self) -> bool:
        return any(health.under_way for health in self.health.values())

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do, now or after a pause."""
        return bool(self._ready) or self.is_sending or bool(self.down())

    def enter(self, parcel: Parcel) -> None:
        """Take a place at the parcel's endpoint."""
        health = self.health_of(parcel)
        health.under_way += 1
        health.turn = next(self._turns)

    def leave(self, parcel: Parcel) -> None:
        self.health_of(parcel).under_way -= 1
        self.changed.set()

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            if any(parcel.delivery_id in self._held for parcel in group.left):
                continue
            self._held.update(dict.fromkeys((parcel.delivery_id for parcel in group.left), group))
            self._ready.setdefault(group.places, deque()).append(group)

    def forget_ready(self) -> None:
        """Drop what is read and not begun: it is read again."""
        for groups in self._ready.values():
            for group in groups:
                self.release(group.left)
        self._ready.clear()

    def release(self, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            self._held.pop(parcel.delivery_id, None)

    @property
    def held(self) -> Collection[int]:
        """The deliveries in our hands, not to be read again."""
        return self._held.keys()

    @property
    def ready_count(self) -> int:
        return sum(map(len, self._ready.values()))

    def next_ready(self) -> Group | None:
        """Take a group one of whose endpoints has room."""
        for places, groups in list(self._ready.items()):
            if any(self._may_try(place) for place in places):
                group = groups.popleft()
                if not groups:
                    del self._ready[places]
                return group
        return None

    def choose(self, parcels: Collection[Parcel]) -> Parcel | None:
        """Pick the one to try: in doubt first, those that failed lately last, else whose last turn is longest ago.

        So the endpoints of a group share evenly, and one that comes back gets no more than its share.
        """
        candidates = [parcel for parcel in parcels if self._may_try(parcel.place)]
        if not candidates:
            return None
        random.shuffle(candidates)
        return min(
            candidates,
            key=lambda parcel: (
                not parcel.redelivery,
                self.health_of(parcel).has_failed_lately(),
                self.health_of(parcel).turn,
            ),
        )

    def _may_try(self, place: int | str) -> bool:
        has_room = self._health_at(place).has_room(self.manner.places)
        return has_room and not (self._is_parked and place in self._hanging())

    def _health_at(self, place: int | str) -> Health:
        return self.health.setdefault(place, Health())

    def _hanging(self) -> set[int | str]:
        since = time.monotonic() - SLOW_SECONDS
        return {attempt.place for attempt in self.under_way.values() if attempt.is_older(since)}
