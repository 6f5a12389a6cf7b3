"""The memory of a process for long bodies, and each requester's share of it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

# A body without a byte for so long may be given up for another.
SILENT_SECONDS = 2.0


class Capacity:
    """Capacity for the bytes of bodies in memory, with a share for each requester."""

    def __init__(self, max_bytes: int, *, share: int, gives_up: bool) -> None:
        self._free = max_bytes
        # Whether a silent body is given up for one that moves.
        self._gives_up = gives_up
        self._share = share
        self._used: dict[str, int] = {}
        # By the time of their latest piece.
        self._reading: dict[Taken, None] = {}

    @contextmanager
    def taking(self, name: str) -> "Iterator[Taken]":
        """Yield the part of a requester's body, and give it back."""
        taken = Taken(self, name)
        try:
            yield taken
        finally:
            self._give_back(taken)

    def take(self, taken: "Taken", count: int) -> bool:
        """Take bytes for a body; False if there are none, for this requester or at all."""
        self._reading.pop(taken, None)
        while not self._has_room(taken.name, count):
            silent = self._silent(taken.name, count) if self._gives_up else None
            if silent is None:
                return False
            silent.given_up.set_result(None)
            self._give_back(silent)
        self._add(taken, count)
        self._reading[taken] = None
        return True

    def _has_room(self, name: str, count: int) -> bool:
        return count <= self._free and self._is_within_share(name, count)

    def _is_within_share(self, name: str, count: int) -> bool:
        return self._used.get(name, 0) + count <= self._share

    def _silent(self, name: str, count: int) -> "Taken | None":
        """Return the body that has been silent for longest and would make room."""
        any_helps = self._is_within_share(name, count)
        return next(
            (
                taken
                for taken in self._reading
                if not taken.is_complete
                and (any_helps or taken.name == name)
                and taken.silent_seconds() >= SILENT_SECONDS
            ),
            None,
        )

    def _give_back(self, taken: "Taken") -> None:
        self._reading.pop(taken, None)
        self._add(taken, -taken.count)

    def _add(self, taken: "Taken", count: int) -> None:
        taken.count += count
        self._free -= count
        used = self._used.get(taken.name, 0) + count
        if used:
            self._used[taken.name] = used
        else:
            self._used.pop(taken.name, None)


class Taken:
    """The part of a capacity that one body takes."""

    def __init__(self, capacity: Capacity, name: str) -> None:
        self._capacity = capacity
        self.name = name
        self.count = 0
        self.is_complete = False
        # Done when the body is given up for another.
        self.given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._latest_at = 0.0

    def add(self, count: int) -> bool:
        self._latest_at = asyncio.get_running_loop().time()
        return self._capacity.take(self, count)

    def silent_seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._latest_at
