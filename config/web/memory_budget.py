"""The memory of a process for long bodies, and each requester's share of it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

# A body without a byte for so long may be given up for another.
SILENT_SECONDS = 2.0


class MemoryBudget:
    """MemoryBudget for the bytes of bodies in memory, with a share for each requester."""

    def __init__(self, max_bytes: int, *, share: int, gives_up: bool) -> None:
        self._free = max_bytes
        # Whether a silent body is given up for a moving body.
        self._gives_up = gives_up
        self._share = share
        self._used: dict[str, int] = {}
        # By the time of their latest piece.
        self._reading: dict[Reservation, None] = {}

    @contextmanager
    def reserving(self, name: str) -> "Iterator[Reservation]":
        """Yield the part of a requester's body, and give it back."""
        reservation = Reservation(self, name)
        try:
            yield reservation
        finally:
            self._give_back(reservation)

    def take(self, reservation: "Reservation", count: int) -> bool:
        """Take bytes for a body; False if there are none, for this requester or at all."""
        self._reading.pop(reservation, None)
        while not self._has_room(reservation.name, count):
            silent = self._silent(reservation.name, count) if self._gives_up else None
            if silent is None:
                return False
            silent.given_up.set_result(None)
            self._give_back(silent)
        self._add(reservation, count)
        self._reading[reservation] = None
        return True

    def _has_room(self, name: str, count: int) -> bool:
        return count <= self._free and self._is_within_share(name, count)

    def _is_within_share(self, name: str, count: int) -> bool:
        return self._used.get(name, 0) + count <= self._share

    def _silent(self, name: str, count: int) -> "Reservation | None":
        """Return the longest silent body whose removal makes room."""
        any_helps = self._is_within_share(name, count)
        return next(
            (
                reservation
                for reservation in self._reading
                if not reservation.is_complete
                and (any_helps or reservation.name == name)
                and reservation.silent_seconds() >= SILENT_SECONDS
            ),
            None,
        )

    def _give_back(self, reservation: "Reservation") -> None:
        self._reading.pop(reservation, None)
        self._add(reservation, -reservation.count)

    def _add(self, reservation: "Reservation", count: int) -> None:
        reservation.count += count
        self._free -= count
        used = self._used.get(reservation.name, 0) + count
        if used:
            self._used[reservation.name] = used
        else:
            self._used.pop(reservation.name, None)


class Reservation:
    """The part of a budget reserved for a body."""

    def __init__(self, budget: MemoryBudget, name: str) -> None:
        self._budget = budget
        self.name = name
        self.count = 0
        self.is_complete = False
        # Done when the body is given up for another.
        self.given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._latest_at = 0.0

    def add(self, count: int) -> bool:
        self._latest_at = asyncio.get_running_loop().time()
        return self._budget.take(self, count)

    def silent_seconds(self) -> float:
        return asyncio.get_running_loop().time() - self._latest_at
