"""A lane of independent messages in memory: what is read, attempts that are under way, endpoints' health.

Such are those of the queue senders, the retry lane, the callback lane and those of CONCURRENT subscribers.
"""

import asyncio
import itertools
import math
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery.senders.entries import Run
from delivery.senders.health import Health
from delivery.senders.lane import Lane
from delivery.senders.manner import manner_of
from delivery.senders.outages import Outages
from delivery.senders.parcel import Group, Parcel, Place
from delivery.senders.ready import Ready


@dataclass(slots=True)
class UnderWay:
    """An attempt that is to be recorded, or is being made `since` a moment of the monotonic clock."""

    place: Place
    attempts: int
    since: float | None = None
    task: asyncio.Task[None] | None = field(default_factory=asyncio.current_task)

    def is_older(self, moment: float) -> bool:
        return self.since is not None and self.since < moment


class QueueLane(Lane):
    """`changed` is set whenever there may be something to do: news, a place that is free again, a pause that is over.

    `more` are the places of which there may be more to read than was read last, at `read_at`. What stops it
    was reviewed at `reviewed_at`. `wakes` counts how often there was a reason to look again at what is read.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row)
        self.manner = manner_of(row["kind"], self.pace)
        self.changed = asyncio.Event()
        self.outages = Outages(row)
        self.health: dict[Place, Health] = self.outages.health()
        self.under_way: dict[int, UnderWay] = {}
        self.ready = Ready()
        self.more: set[Place] = set()
        self.read_at = float("-inf")
        self.reviewed_at = float("-inf")
        self.wakes = 0
        self._held: dict[int, Group] = {}
        self._turns = itertools.count(1)
        self._places_taken = 0
        self._share = self.manner.places

    @property
    def is_pausing(self) -> bool:
        return self.outages.is_pausing

    def is_tried(self, place: Place) -> bool:
        """Whether an attempt there is under way, which may yet succeed."""
        return any(attempt.place == place for attempt in self.under_way.values())

    def doubtful(self) -> Collection[int]:
        """What stops the lane at endpoints that could be tried now, and are not."""
        return [
            delivery_id
            for place, delivery_id in self.outages.deliveries.items()
            if not self._health_at(place).is_down() and not self.is_tried(place)
        ]

    def is_hanging(self, *, since: float) -> bool:
        return any(attempt.is_older(since) for attempt in self.under_way.values())

    def cut_off(self) -> None:
        for attempt in list(self.under_way.values()):
            if attempt.since is not None and attempt.task is not None:
                attempt.task.cancel()

    def bring_news(self) -> None:
        super().bring_news()
        self.changed.set()

    def wake(self) -> None:
        super().wake()
        self.wakes += 1
        self.changed.set()

    def try_now(self) -> None:
        """End all pauses."""
        self.outages.try_now()
        for health in self.health.values():
            health.try_now()

    @property
    def places(self) -> Collection[Place]:
        return self.health.keys()

    def run(self) -> Run:
        """What is to be recorded: what is under way, or about to be."""
        return Run(
            lane_id=self.id,
            ids=tuple(self.under_way),
            attempts=tuple(attempt.attempts for attempt in self.under_way.values()),
            is_concurrent=True,
        )

    def health_of(self, parcel: Parcel) -> Health:
        return self._health_at(parcel.place)

    def down(self) -> list[Place]:
        """The endpoints that are to be left alone now."""
        return [place for place, health in self.health.items() if health.is_down()]

    @property
    def is_sending(self) -> bool:
        return self._places_taken > 0

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do, now or after a pause."""
        return bool(self.ready) or self.is_sending or bool(self.down())

    def enter(self, parcel: Parcel) -> None:
        """Take a place at the parcel's endpoint."""
        health = self.health_of(parcel)
        health.under_way += 1
        self._places_taken += 1
        health.turn = next(self._turns)

    def leave(self, parcel: Parcel) -> None:
        self.health_of(parcel).under_way -= 1
        self._places_taken -= 1
        self.changed.set()

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._held.update(dict.fromkeys((parcel.delivery_id for parcel in group.left), group))
            self.ready.add(group)

    def forget_ready(self) -> None:
        """Drop what is read and not begun: it is read again."""
        for group in self.ready.clear():
            self.release(group.left)

    def release(self, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            self._held.pop(parcel.delivery_id, None)

    @property
    def held(self) -> Collection[int]:
        """The deliveries in our hands, not to be read again."""
        return self._held.keys()

    def closed(self, *, rows: int, max_bytes: int) -> set[Place]:
        """The places of which nothing more is to be read now: they are down, or have their share of what may be held."""
        sharers = max(len(self.health), self.manner.least_places)
        share = max(rows // sharers, 2 * self.manner.places)
        return self.ready.full(groups=share, max_bytes=max_bytes // sharers).union(self.down())

    def next_ready(self) -> Group | None:
        """Take a group one of whose places has room."""
        if self._places_taken >= self.manner.most:
            return None
        self._share = self._share_of_a_place()
        return self.ready.take(self._may_try)

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

    def _share_of_a_place(self) -> int:
        """How many attempts an endpoint may have under way: the slow must not take what the others could use.

        It is reckoned once for each group that is taken: who takes it chooses by the same.
        """
        if not self.manner.divides:
            return self.manner.places
        sharers = sum(not self._health_at(place).is_down() for place in self.ready.places)
        return math.ceil(self.manner.most / max(sharers, 1))

    def _may_try(self, place: Place) -> bool:
        return self._health_at(place).has_room(self._share)

    def _health_at(self, place: Place) -> Health:
        return self.health.setdefault(place, Health())
