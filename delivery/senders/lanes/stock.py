"""The deliveries that a lane has read: ready to be sent, or taken by a job.

A nudge or a block makes all earlier reads stale, and a read under way too: they are of an earlier
generation.
"""

import time
from collections.abc import Callable, Collection, Iterable

from delivery.senders.lanes.keys import Keys
from delivery.senders.lanes.ready import Ready
from delivery.senders.lanes.window import WHOLE_LANE, Window
from delivery.senders.parcel import Group, Key, Parcel
from delivery.senders.run_result import RunResult

# With deliveries in memory, new work is read at this interval.
READ_SECONDS = 0.1


class Stock:
    """The deliveries of one lane in memory; `more` are the keys that may have more to read."""

    def __init__(self, window: Window, keys: Keys) -> None:
        self._window = window
        self._keys = keys
        self._ready = Ready()
        self._in_memory: dict[int, Group] = {}
        self.generation = 0
        self._ready_generation = 0
        self.more: set[Key] = {WHOLE_LANE}
        self._level = 0
        self._read_at = float("-inf")
        # For an ordered lane: whether the last run had the maximum length, and its result so far.
        self._is_full = False
        self._result: RunResult | None = None

    def __bool__(self) -> bool:
        """True if a group is ready."""
        return bool(self._ready)

    @property
    def is_cut(self) -> bool:
        """True if an ordered lane's last read had the maximum length, so that there may be more."""
        return self._is_full

    @property
    def is_low(self) -> bool:
        """True if an ordered lane should read on while it sends."""
        if not self._is_full or len(self._ready) > self._level:
            return False
        run = self._result
        return run is None or not run.is_fruitless or run.goes_on

    def closed(self, *, rows: int, max_bytes: int) -> set[Key]:
        """Return the keys that must not be read now: blocked, or with their share of the memory."""
        blocked = self._keys.blocked()
        if self._window.is_ordered:
            return set(blocked)
        sharers = max(len(self._keys.known), self._window.least_keys)
        share = max(rows // sharers, 2 * (self._window.per_key or self._window.size))
        return self._ready.full(groups=share, max_bytes=max_bytes // sharers).union(blocked)

    def wants_more(
        self, closed: Collection[Key], *, rows: int, is_sending: bool, is_notified: bool
    ) -> bool:
        """Return whether to read on: few sendable groups are left, and there is more to read.

        A notification counts as well, but at most once per READ_SECONDS. An ordered lane reads on
        while it sends if its last read was full, unless the run is fruitless so far and has no
        more: it may end in a pause.
        """
        self._level = self._window.level(rows)
        if WHOLE_LANE in closed:
            return False
        if self._window.is_ordered and (self._ready or is_sending):
            return self.is_low
        if self._ready.open_count(closed) > self._level:
            return False
        if self.more.difference(closed):
            return True
        is_rested = not self._ready or time.monotonic() >= self._read_at + READ_SECONDS
        return is_notified and is_rested

    def begin_reading(self) -> tuple[int, frozenset[int]]:
        """Return the generation of the read, and the deliveries in memory, which it leaves out."""
        self._read_at = time.monotonic()
        return self.generation, frozenset(self._in_memory)

    def add(self, groups: Collection[Group], *, more: set[Key], is_full: bool = False) -> None:
        """Add the groups of a read."""
        self.more = more
        self._is_full = is_full
        self._ready_generation = self.generation
        for group in groups:
            self._result = group.run_result
            self._in_memory.update(
                dict.fromkeys((parcel.delivery_id for parcel in group.left), group)
            )
            self._ready.add(group, self._window.keys_of(group))

    def take(self) -> tuple[Group, Parcel] | None:
        """Take a group one of whose keys has room, and choose the parcel; None if there is none.

        Nothing more is taken from a stale run: it is forgotten as a whole.
        """
        if self._window.is_ordered and self._ready_generation != self.generation:
            return None
        if self._window.per_key is None:
            self._keys.divide(self._ready.keys)
        group = self._ready.take(self._keys.may_try)
        if group is None:
            return None
        parcel = group.left[0] if len(group.left) == 1 else self._keys.choose(group.left)
        return None if parcel is None else (group, parcel)

    def parcels(self) -> list[Parcel]:
        return self._ready.parcels()

    def first(self) -> Parcel | None:
        """Return the next parcel; for lanes with one key."""
        return self._ready.first()

    def set_aside(self, is_set_aside: Callable[[Parcel], bool]) -> None:
        """Drop the groups of which no delivery may be sent: held back, or overdue."""
        for group in self._ready.remove(is_set_aside):
            self.drop(group.left)
            if group.run_result is not None:
                group.run_result.set_aside()

    def exhaust(self) -> None:
        """Note that nothing is left to read until a notification, or until the run is forgotten."""
        self.more.clear()

    def outdate(self) -> None:
        """Make all reads stale, including one under way."""
        self.generation += 1

    def forget(self) -> bool:
        """Drop the ready groups and a read under way; they are read again.

        Return whether any was ready.
        """
        self.outdate()
        self.more.add(WHOLE_LANE)
        # No reading ahead of a delivery that failed: its outcome may wait for a lock for longer
        # than the lane's pause lasts.
        self._is_full = False
        forgotten = self._ready.clear()
        for group in forgotten:
            self.drop(group.left)
        return bool(forgotten)

    def drop(self, parcels: Iterable[Parcel]) -> None:
        """Remove these parcels from memory: no attempt of theirs is under way any more."""
        for parcel in parcels:
            self._in_memory.pop(parcel.delivery_id, None)
