"""Groups: entries of one lane that are committed together, and those of them that wait for a row which somebody else has locked."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from delivery.senders.entries import Entry

log = logging.getLogger(__name__)


class EntryGroup:
    """Entries that are committed together, and who waits for them."""

    __slots__ = ("committed", "entries", "lane_id")

    def __init__(self, lane_id: int, entries: tuple[Entry, ...], committed: "asyncio.Future[None]") -> None:
        self.lane_id = lane_id
        self.entries = entries
        self.committed = committed


def fail(groups: Iterable[EntryGroup], error: Exception) -> None:
    for group in groups:
        if not group.committed.done():
            group.committed.set_exception(error)


class HeldUp:
    """Groups whose commit met a lock, by lane, each lane's in the order in which they were handed in.

    What a lane hands in while one of its groups is here waits behind that: were it committed first, an older run
    of the lane would replace the newer one, and after a crash what was sent would not be known.
    `is_any` is set while there is one.
    """

    def __init__(self) -> None:
        self._lanes: dict[int, deque[EntryGroup]] = {}
        self.is_any = asyncio.Event()

    @property
    def lane_ids(self) -> Sequence[int]:
        return list(self._lanes)

    def join(self, groups: Iterable[EntryGroup]) -> list[EntryGroup]:
        """Put those behind their lane's that are here already, and return the others."""
        others = []
        for group in groups:
            if group.lane_id in self._lanes:
                self._lanes[group.lane_id].append(group)
            else:
                others.append(group)
        return others

    def put_back(self, groups: Sequence[EntryGroup]) -> None:
        """They could not be committed: they are the first of their lanes."""
        for group in reversed(groups):
            self._lanes.setdefault(group.lane_id, deque()).appendleft(group)
        self.is_any.set()

    def take(self, lane_id: int) -> EntryGroup | None:
        """Take out the lane's first that somebody still waits for; None if there is none."""
        groups = self._lanes.get(lane_id, deque())
        found = None
        while groups and found is None:
            group = groups.popleft()
            found = None if group.committed.done() else group
        if not groups:
            self._lanes.pop(lane_id, None)
        if not self._lanes:
            self.is_any.clear()
        return found
