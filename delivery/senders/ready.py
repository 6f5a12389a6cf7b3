"""The groups that a lane has read and not begun, by their keys.

What belongs to a key that takes nothing now stays here. So that it neither fills the memory nor keeps what
others may get from being read, a key that has its share is full, and nothing more of it is read.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection

from delivery.senders.parcel import Group, Key, Parcel


class Ready:
    """Groups of the same keys come out in the order in which they were read."""

    def __init__(self) -> None:
        self._groups: dict[frozenset[Key], deque[Group]] = {}
        self._counts: Counter[Key] = Counter()
        self._bytes: Counter[Key] = Counter()

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, group: Group, keys: frozenset[Key]) -> None:
        self._groups.setdefault(keys, deque()).append(group)
        self._count(group, keys, 1)

    def take(self, may_try: Callable[[Key], bool]) -> Group | None:
        """Take the oldest group of keys one of which may be tried; those keys come last next time."""
        for keys in self._groups:
            if any(map(may_try, keys)):
                groups = self._groups.pop(keys)
                group = groups.popleft()
                if groups:
                    self._groups[keys] = groups
                self._count(group, keys, -1)
                return group
        return None

    def remove(self, subscription_id: int) -> list[Group]:
        """Take out the groups that only this subscription could take."""
        removed = []
        for keys, groups in list(self._groups.items()):
            kept: deque[Group] = deque()
            for group in groups:
                if all(parcel.subscription_id == subscription_id for parcel in group.left):
                    removed.append(group)
                    self._count(group, keys, -1)
                else:
                    kept.append(group)
            if kept:
                self._groups[keys] = kept
            else:
                del self._groups[keys]
        return removed

    def clear(self) -> list[Group]:
        """Forget them all, and return them."""
        forgotten = [group for groups in self._groups.values() for group in groups]
        self._groups.clear()
        self._counts.clear()
        self._bytes.clear()
        return forgotten

    def full(self, *, groups: int, max_bytes: int) -> set[Key]:
        """The keys that have so many groups or bytes."""
        return {
            key for key, count in self._counts.items() if count >= groups or self._bytes[key] >= max_bytes
        }

    @property
    def keys(self) -> Collection[Key]:
        """The keys that have something ready."""
        return self._counts.keys()

    def parcels(self) -> list[Parcel]:
        """All that is ready."""
        return [parcel for groups in self._groups.values() for group in groups for parcel in group.left]

    def first(self) -> Parcel | None:
        """What is sent next, where there is one key."""
        for groups in self._groups.values():
            return groups[0].left[0]
        return None

    def open_count(self, closed: Collection[Key]) -> int:
        """How many groups may go to another key than those."""
        return sum(len(groups) for keys, groups in self._groups.items() if not keys.issubset(closed))

    def _count(self, group: Group, keys: frozenset[Key], step: int) -> None:
        size = len(group.left[0].body)
        for key in keys:
            self._counts[key] += step
            self._bytes[key] += step * size
            if not self._counts[key]:
                del self._counts[key], self._bytes[key]
