"""What a lane sends next: the deliveries it has read, and the choice among them.

    read ─▶ ready groups ─▶ a group with room at any key ─▶ the parcel to try ─▶ in flight

A parcel waits by its key after a failed attempt: by the lane as a whole, or by its endpoint. The
groups of a blocked key stay here. A key whose groups fill its share of the memory is left out of
the next read: so it neither fills the memory nor prevents reading for the other keys. A nudge or a
block makes all earlier reads stale, and a read under way too: they are of an earlier generation.
`senders/README.md` has the states of groups and keys.
"""

import itertools
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from delivery.senders.lanes.window import WHOLE_LANE, WaitsBy, Window
from delivery.senders.parcel import Group, Key, Parcel
from delivery.senders.run_result import RunResult

# With deliveries in memory, new work is read at this interval.
READ_SECONDS = 0.1
# For this long a failed endpoint is tried after its siblings.
TRIED_LAST_SECONDS = 60.0
# The retry lane reports an endpoint as reached at most so often: each report costs a statement.
REPORT_SECONDS = 1.0
# A lane that catches up makes up for a delay of this length, while it waited for something else.
LATE_SECONDS = 0.1
# A lane that catches up executes the scripts of this much time together. With a whole batch each,
# lanes that were released together execute hundreds of scripts at once, and fill the cores.
AHEAD_SECONDS = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """The delivery that failed last at a key, and why."""

    delivery_id: int
    reason: str


@dataclass(slots=True)
class KeyHealth:
    """The health of a key, and how many attempts are in flight there.

    `failures` counts the failures in a row; `turn` is the number of the last attempt, in the order
    of all attempts.
    """

    in_flight: int = 0
    turn: int = 0
    failures: int = 0
    failed_at: float = float("-inf")
    blocked_until: float = float("-inf")
    # The failure that blocked the key last.
    failure: Failure | None = None
    reported_at: float = float("-inf")

    def is_blocked(self) -> bool:
        return time.monotonic() < self.blocked_until

    @property
    def seconds_left(self) -> float:
        """The seconds until the pause is over."""
        return max(self.blocked_until - time.monotonic(), 0.0)

    def has_failed_lately(self) -> bool:
        return time.monotonic() < self.failed_at + TRIED_LAST_SECONDS

    def has_room(self, most: int) -> bool:
        if not self.failures:
            return self.in_flight < most
        was_blocked = self.blocked_until > self.failed_at
        return self.in_flight < (1 if was_blocked else most) and not self.is_blocked()

    def is_report_due(self) -> bool:
        """Return whether to report the key as reached, and note the report."""
        now = time.monotonic()
        if now < self.reported_at + REPORT_SECONDS:
            return False
        self.reported_at = now
        return True

    def answered(self) -> None:
        """Note that the key accepted a message, or refused a message for good."""
        self.failures = 0
        self.blocked_until = float("-inf")
        self.failure = None

    def accepted(self) -> None:
        self.answered()
        self.failed_at = float("-inf")

    def failed(self) -> None:
        self.failures += 1
        self.failed_at = time.monotonic()

    def block(self, seconds: float) -> None:
        """Note a failure, and block the key for so many seconds."""
        self.failed()
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        self.blocked_until = time.monotonic() + seconds

    def try_now(self) -> None:
        """End the pause; a key that was blocked is tried with one message."""
        self.blocked_until = min(self.blocked_until, time.monotonic())


class Keys:
    """The known keys of a lane, and the order in which they are served."""

    def __init__(self, window: Window) -> None:
        self._max_in_flight = window.max_in_flight
        self._key_of = window.key_of
        self._health: dict[Key, KeyHealth] = {}
        self._turns = itertools.count(1)
        # The number of attempts in flight, at all keys.
        self.in_flight = 0
        self._share = window.max_in_flight_per_key or window.max_in_flight

    @property
    def known(self) -> Collection[Key]:
        return self._health.keys()

    def add(self, key: Key, health: KeyHealth) -> None:
        self._health[key] = health

    def health_of(self, parcel: Parcel) -> KeyHealth:
        return self.health(self._key_of(parcel))

    def health(self, key: Key) -> KeyHealth:
        health = self._health.get(key)
        if health is None:
            health = self._health[key] = KeyHealth()
        return health

    def blocked(self) -> list[Key]:
        """Return the keys to which nothing is sent now."""
        return [key for key, health in self._health.items() if health.is_blocked()]

    def may_try(self, key: Key) -> bool:
        return self.health(key).has_room(self._share)

    def enter(self, parcel: Parcel) -> None:
        """Count an attempt at the parcel's key."""
        health = self.health_of(parcel)
        health.in_flight += 1
        self.in_flight += 1
        health.turn = next(self._turns)

    def leave(self, parcel: Parcel) -> None:
        self.health_of(parcel).in_flight -= 1
        self.in_flight -= 1

    def divide(self, ready: Collection[Key]) -> None:
        """Set how many attempts a key may have in flight: slow keys must leave room for others.

        Call this once for each group taken: the choice within the group uses the same share.
        """
        sharers = sum(not self.health(key).is_blocked() for key in ready)
        self._share = math.ceil(self._max_in_flight / max(sharers, 1))

    def choose(self, parcels: Collection[Parcel]) -> Parcel | None:
        """Choose the parcel to try.

        Parcels that may have been sent before come first, keys that failed recently last; otherwise
        the key whose last turn is the longest ago is chosen. So the endpoints of a group share
        evenly, and a recovering endpoint gets no more than its share.
        """
        candidates = [parcel for parcel in parcels if self.health_of(parcel).has_room(self._share)]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        random.shuffle(candidates)
        return min(candidates, key=self._rank)

    def _rank(self, parcel: Parcel) -> tuple[bool, bool, int]:
        health = self.health_of(parcel)
        return not parcel.redelivery, health.has_failed_lately(), health.turn

    def try_now(self) -> None:
        """End all pauses, because a person requested it or a subscription changed."""
        for health in self._health.values():
            health.try_now()


class ReadyGroups:
    """The groups read and not begun, by their keys.

    Groups of the same keys are taken in the order in which they were read.
    """

    def __init__(self) -> None:
        self._groups: dict[frozenset[Key], deque[Group]] = {}
        # The bytes of the groups' bodies.
        self._bytes: Counter[frozenset[Key]] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, group: Group, keys: frozenset[Key]) -> None:
        self._groups.setdefault(keys, deque()).append(group)
        self._bytes[keys] += len(group.left[0].body)

    def take(self, may_try: Callable[[Key], bool]) -> Group | None:
        """Take the oldest group of the first keys of which any may be tried.

        These keys come last next time.
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
        """Take out the groups of which all deliveries are to be removed."""
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
        """Return the keys with so many groups or bytes, or more."""
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
        """Return the next parcel; for lanes with a single key."""
        for groups in self._groups.values():
            return groups[0].left[0]
        return None

    def open_count(self, closed: Collection[Key]) -> int:
        """Count the groups that may go to a key other than the closed ones."""
        return sum(
            len(groups) for keys, groups in self._groups.items() if not keys.issubset(closed)
        )


class CatchUpRate:
    """The limit of deliveries that a lane begins per second while it catches up after a hold.

    Without a rate the check costs nothing.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._due_at = time.monotonic()

    def set(self, rate: float | None) -> bool:
        """Use this rate from now on; return whether it differs from the last."""
        if rate == self._rate:
            return False
        self._rate = rate
        self._due_at = time.monotonic()
        return True

    @property
    def is_limited(self) -> bool:
        return self._rate is not None

    @property
    def seconds_left(self) -> float:
        """The seconds until the next delivery may begin."""
        return max(self._due_at - time.monotonic(), 0.0)

    def rows_ahead(self, rows: int) -> int:
        """Return for how many of so many deliveries to execute scripts at a time; at least 1."""
        if self._rate is None:
            return rows
        return min(rows, max(math.ceil(self._rate * AHEAD_SECONDS), 1))

    def count(self) -> None:
        """Count a delivery that begins now."""
        if self._rate is not None:
            self._due_at = max(self._due_at, time.monotonic() - LATE_SECONDS) + 1 / self._rate


class Stock:
    """The deliveries of one lane in memory, ready or in flight.

    `more`: the keys that may have more to read; WHOLE_LANE stands for any key.
    """

    def __init__(self, window: Window, keys: Keys, rate: CatchUpRate) -> None:
        self._window = window
        self._keys = keys
        self._rate = rate
        self._ready = ReadyGroups()
        self._in_memory: dict[int, Group] = {}
        self.generation = 0
        self._ready_generation = 0
        self.more: set[Key] = {WHOLE_LANE}
        self._level = 0
        self._read_at = float("-inf")
        # Of a run recorded ahead: whether the last read had the maximum length, and the result so
        # far.
        self._is_full = False
        self._result: RunResult | None = None

    def __bool__(self) -> bool:
        """True if a group is ready."""
        return bool(self._ready)

    @property
    def is_cut(self) -> bool:
        """True if the last read of a run had the maximum length, so that there may be more."""
        return self._is_full

    @property
    def is_low(self) -> bool:
        """True if a lane that records its run ahead should read ahead while it sends."""
        if not self._is_full or len(self._ready) > self._level:
            return False
        run = self._result
        return run is None or not run.is_fruitless or run.goes_on

    def closed(self, *, rows: int, max_bytes: int) -> set[Key]:
        """Return the keys to leave out of the next read.

        They are blocked, or their deliveries in memory already fill their share.
        """
        blocked, window = self._keys.blocked(), self._window
        if window.waits_by is WaitsBy.LANE:
            return set(blocked)
        sharers = max(len(self._keys.known), window.least_keys)
        share = max(rows // sharers, 2 * (window.max_in_flight_per_key or window.max_in_flight))
        return self._ready.full(groups=share, max_bytes=max_bytes // sharers).union(blocked)

    def wants_more(
        self, closed: Collection[Key], *, rows: int, is_sending: bool, is_notified: bool
    ) -> bool:
        """Return whether to read ahead: few sendable groups are left, and there is more to read.

        A notification counts as well, but at most once per READ_SECONDS. A lane that records its
        run ahead reads while it sends if the last read was full, unless the run is fruitless so
        far and has no more: it may end in a pause.
        """
        self._level = self._window.level(rows)
        if WHOLE_LANE in closed:
            return False
        if self._window.records_ahead and (self._ready or is_sending):
            return self.is_low
        if self._ready.open_count(closed) > self._level:
            return False
        if self.more.difference(closed):
            return True
        is_rested = not self._ready or time.monotonic() >= self._read_at + READ_SECONDS
        return is_notified and is_rested

    def begin_reading(self) -> tuple[int, frozenset[int]]:
        """Return the generation of the read, and the deliveries in memory, to leave out."""
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
        """Take a group of which any key has room, and choose its parcel; None if there is none.

        The parcel's attempt is counted. No more is taken than the window has room for, and nothing
        from a stale run: the lane forgets it as a whole.
        """
        keys, window = self._keys, self._window
        if keys.in_flight >= window.max_in_flight:
            return None
        if self._rate.is_limited and self._rate.seconds_left > 0:
            return None
        if window.records_ahead and self._ready_generation != self.generation:
            return None
        if window.max_in_flight_per_key is None:
            keys.divide(self._ready.keys)
        group = self._ready.take(keys.may_try)
        if group is None:
            return None
        parcel = group.left[0] if len(group.left) == 1 else keys.choose(group.left)
        if parcel is None:
            return None
        self._rate.count()
        keys.enter(parcel)
        return group, parcel

    def take_sibling(self, group: Group) -> Parcel | None:
        """Choose and count the parcel to try next in a group that another endpoint refused."""
        parcel = self._keys.choose(group.left)
        if parcel is not None:
            self._keys.enter(parcel)
        return parcel

    def parcels(self) -> list[Parcel]:
        return self._ready.parcels()

    def first(self) -> Parcel | None:
        """Return the next parcel; for lanes with a single key."""
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
        """Make all reads stale, even a read under way."""
        self.generation += 1

    def forget(self) -> bool:
        """Drop the ready groups and a read under way: their deliveries are read again.

        Return whether any was ready.
        """
        self.outdate()
        self.more.add(WHOLE_LANE)
        # No reading ahead of a failed delivery: the outcome may wait for a lock for longer than the
        # lane pauses.
        self._is_full = False
        forgotten = self._ready.clear()
        for group in forgotten:
            self.drop(group.left)
        return bool(forgotten)

    def drop(self, parcels: Iterable[Parcel]) -> None:
        """Remove these parcels from memory: none is in flight any more."""
        for parcel in parcels:
            self._in_memory.pop(parcel.delivery_id, None)
