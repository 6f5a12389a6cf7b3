"""Groups: entries of one lane that are committed together, and groups that wait for a row lock."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from delivery.senders.entries import Entry

log = logging.getLogger(__name__)


class EntryGroup:
    """Entries that are committed together, with the future that their lane awaits."""

    __slots__ = ("committed", "entries", "lane_id")

    def __init__(
        self, lane_id: int, entries: tuple[Entry, ...], committed: "asyncio.Future[None]"
    ) -> None:
        self.lane_id = lane_id
        self.entries = entries
        self.committed = committed


def fail_groups(groups: Iterable[EntryGroup], error: Exception) -> None:
    for group in groups:
        if not group.committed.done():
            group.committed.set_exception(error)


class HeldUp:
    """Groups whose commit met a lock, by lane, in the order in which they were handed in.

    Entries that a lane hands in while one of its groups is here wait behind that group: committed
    first, they would be overwritten by an older run of the lane, and after a crash nobody would
    know which deliveries were sent. `is_any` is set while there is a group.
    """

    def __init__(self) -> None:
        self._lanes: dict[int, deque[EntryGroup]] = {}
        self.is_any = asyncio.Event()

    @property
    def lane_ids(self) -> Sequence[int]:
        return list(self._lanes)

    def join(self, groups: Iterable[EntryGroup]) -> list[EntryGroup]:
        """Queue groups of lanes that are held up behind the earlier ones.

        Return the other groups.
        """
        others = []
        for group in groups:
            if group.lane_id in self._lanes:
                self._lanes[group.lane_id].append(group)
            else:
                others.append(group)
        return others

    def put_back(self, groups: Sequence[EntryGroup]) -> None:
        """Put groups whose commit met a lock first in their lanes."""
        for group in reversed(groups):
            self._lanes.setdefault(group.lane_id, deque()).appendleft(group)
        self.is_any.set()

    def take(self, lane_id: int) -> EntryGroup | None:
        """Take out the lane's first group that somebody still waits for; None if there is none."""
        groups = self._lanes.get(lane_id, deque())
        next_group = None
        while groups and next_group is None:
            group = groups.popleft()
            next_group = None if group.committed.done() else group
        if not groups:
            self._lanes.pop(lane_id, None)
        if not self._lanes:
            self.is_any.clear()
        return next_group
