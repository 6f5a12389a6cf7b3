"""A queue sender's lane in memory: groups that are read, attempts that are under way, endpoints' health."""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from delivery.senders.entries import Run
from delivery.senders.health import Health
from delivery.senders.lane import SLOW_SECONDS, Lane
from delivery.senders.parcel import Endpoint, Group, Parcel


@dataclass(slots=True)
class UnderWay:
    """An attempt that is to be recorded, or is being made `since` a moment of the monotonic clock."""

    subscription_id: int
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
        self.changed = asyncio.Event()
        self.health: dict[int, Health] = {}
        self.under_way: dict[int, UnderWay] = {}
        self.has_more = False
        self._ready: dict[frozenset[int], deque[Group]] = {}
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

    def health_of(self, subscription_id: int) -> Health:
        return self.health.setdefault(subscription_id, Health())

    def down(self) -> list[int]:
        """The endpoints that are to be left alone now."""
        return [id for id, health in self.health.items() if health.is_down()]

    @property
    def is_sending(self) -> bool:
        return any(health.under_way for health in self.health.values())

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do, now or after a pause."""
        return bool(self._ready) or self.is_sending or bool(self.down())

    def enter(self, parcel: Parcel) -> None:
        """Take a place at the parcel's endpoint."""
        health = self.health_of(parcel.subscription_id)
        health.under_way += 1
        health.turn = next(self._turns)

    def leave(self, parcel: Parcel) -> None:
        self.health_of(parcel.subscription_id).under_way -= 1
        self.changed.set()

    def add(self, groups: Iterable[Group]) -> None:
        for group in groups:
            if any(parcel.delivery_id in self._held for parcel in group.left):
                continue
            self._held.update(dict.fromkeys((parcel.delivery_id for parcel in group.left), group))
            self._ready.setdefault(group.endpoints, deque()).append(group)

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
        for endpoints, groups in list(self._ready.items()):
            if any(self._may_try(id) for id in endpoints):
                group = groups.popleft()
                if not groups:
                    del self._ready[endpoints]
                return group
        return None

    def choose(self, parcels: Collection[Parcel]) -> Parcel | None:
        """Pick the one to try: in doubt first, those that failed lately last, else whose last turn is longest ago.

        So the endpoints of a group share evenly, and one that comes back gets no more than its share.
        """
        candidates = [parcel for parcel in parcels if self._may_try(parcel.subscription_id)]
        if not candidates:
            return None
        random.shuffle(candidates)
        return min(
            candidates,
            key=lambda parcel: (
                not parcel.redelivery,
                self.health_of(parcel.subscription_id).has_failed_lately(),
                self.health_of(parcel.subscription_id).turn,
            ),
        )

    def _may_try(self, subscription_id: int) -> bool:
        health = self.health_of(subscription_id)
        return health.has_room() and not (self._is_parked and subscription_id in self._hanging())

    def _hanging(self) -> set[int]:
        since = time.monotonic() - SLOW_SECONDS
        return {attempt.subscription_id for attempt in self.under_way.values() if attempt.is_older(since)}
