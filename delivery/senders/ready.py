"""The groups that a lane of independent messages has read and not begun, by the places where they may go.

What belongs to a place that takes nothing now stays here. So that it neither fills the memory nor keeps what
others may get from being read, a place that has its share is full, and nothing more of it is read.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection

from delivery.senders.parcel import Group, Place


class Ready:
    def __init__(self) -> None:
        self._groups: dict[frozenset[Place], deque[Group]] = {}
        self._counts: Counter[Place] = Counter()
        self._bytes: Counter[Place] = Counter()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, group: Group) -> None:
        self._groups.setdefault(group.places, deque()).append(group)
        self._count(group, 1)

    def take(self, may_try: Callable[[Place], bool]) -> Group | None:
        """Take the oldest group of places one of which may be tried; those places come last next time."""
        for places in list(self._groups):
            if any(may_try(place) for place in places):
                groups = self._groups.pop(places)
                group = groups.popleft()
                if groups:
                    self._groups[places] = groups
                self._count(group, -1)
                return group
        return None

    def clear(self) -> list[Group]:
        """Forget them all, and return them."""
        forgotten = [group for groups in self._groups.values() for group in groups]
        self._groups.clear()
        self._counts.clear()
        self._bytes.clear()
        return forgotten

    def full(self, *, groups: int, max_bytes: int) -> set[Place]:
        """The places that have so many groups or bytes."""
        return {
            place
            for place, count in self._counts.items()
            if count >= groups or self._bytes[place] >= max_bytes
        }

    @property
    def places(self) -> Collection[Place]:
        """The places that have something ready."""
        return self._counts.keys()

    def open_count(self, closed: Collection[Place]) -> int:
        """How many groups may go to another place than those."""
        return sum(len(groups) for places, groups in self._groups.items() if not places.issubset(closed))

    def _count(self, group: Group, step: int) -> None:
        size = len(group.left[0].body)
        for place in group.places:
            self._counts[place] += step
            self._bytes[place] += step * size
            if not self._counts[place]:
                del self._counts[place], self._bytes[place]
