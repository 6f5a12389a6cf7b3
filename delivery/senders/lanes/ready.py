"""Groups that a lane has read and not begun, by their keys.

The groups of a blocked key stay here. A key that has its share is full, and nothing more of it is
read: so it neither fills the memory nor prevents reading for the other keys.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection

from delivery.senders.parcel import Group, Key, Parcel


class Ready:
    """Groups of the same keys are taken in the order in which they were read."""

    def __init__(self) -> None:
        self._groups: dict[frozenset[Key], deque[Group]] = {}
        # The bytes of their bodies.
        self._bytes: Counter[frozenset[Key]] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, group: Group, keys: frozenset[Key]) -> None:
        self._groups.setdefault(keys, deque()).append(group)
        self._bytes[keys] += len(group.left[0].body)

    def take(self, may_try: Callable[[Key], bool]) -> Group | None:
        """Take the oldest group of keys one of which may be tried.

        Those keys come last next time.
        """
        for keys, groups in self._groups.items():
            if any(map(may_try, keys)):
                group = groups.popleft()
                self._bytes[keys] -= len(group.left[0].body)
                if not groups:
                    del self._groups[keys], self._bytes[keys]
                elif len(self._groups) > 1:
                    self._groups[keys] = self._groups.pop(keys)
                return group
        return None

    def remove(self, is_removed: Callable[[Parcel], bool]) -> list[Group]:
        """Take out the groups all of whose deliveries are to be removed."""
        kept: list[tuple[Group, frozenset[Key]]] = []
        removed: list[tuple[Group, frozenset[Key]]] = []
        for keys, groups in self._groups.items():
            for group in groups:
                is_whole = all(is_removed(parcel) for parcel in group.left)
                (removed if is_whole else kept).append((group, keys))
        self.clear()
        for group, keys in kept:
            self.add(group, keys)
        return [group for group, _ in removed]

    def clear(self) -> list[Group]:
        """Forget all groups, and return them."""
        forgotten = [group for groups in self._groups.values() for group in groups]
        self._groups.clear()
        self._bytes.clear()
        return forgotten

    def full(self, *, groups: int, max_bytes: int) -> set[Key]:
        """Return the keys that have so many groups or bytes."""
        counts, sizes = Counter[Key](), Counter[Key]()
        for keys, held in self._groups.items():
            for key in keys:
                counts[key] += len(held)
                sizes[key] += self._bytes[keys]
        return {key for key, count in counts.items() if count >= groups or sizes[key] >= max_bytes}

    @property
    def keys(self) -> Collection[Key]:
        """The keys that have ready groups."""
        return frozenset[Key]().union(*self._groups)

    def parcels(self) -> list[Parcel]:
        return [
            parcel for groups in self._groups.values() for group in groups for parcel in group.left
        ]

    def first(self) -> Parcel | None:
        """Return the next parcel; for lanes with one key."""
        for groups in self._groups.values():
            return groups[0].left[0]
        return None

    def open_count(self, closed: Collection[Key]) -> int:
        """Count the groups that may go to a key other than those."""
        return sum(
            len(groups) for keys, groups in self._groups.items() if not keys.issubset(closed)
        )
