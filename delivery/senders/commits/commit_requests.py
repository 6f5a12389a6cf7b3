"""Requests to commit entries of a lane together, and the requests that wait for a row lock."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence

from delivery.senders.entries import Entry

log = logging.getLogger(__name__)


class CommitRequest:
    """Entries to commit together, with the future that the lane awaits."""

    __slots__ = ("committed", "entries", "lane_id")

    def __init__(
        self, lane_id: int, entries: tuple[Entry, ...], committed: "asyncio.Future[None]"
    ) -> None:
        self.lane_id = lane_id
        self.entries = entries
        self.committed = committed


def fail_requests(requests: Iterable[CommitRequest], error: Exception) -> None:
    for request in requests:
        if not request.committed.done():
            request.committed.set_exception(error)


class LockedRequests:
    """Requests whose commit met a lock, by lane, in the order in which they were handed in.

    Entries that a lane hands in while a request of the lane is here wait behind this request:
    committed first, they would be overwritten by an older run of the lane, and after a crash nobody
    would know which deliveries were sent. `is_any` is set while any request is here.
    """

    def __init__(self) -> None:
        self._lanes: dict[int, deque[CommitRequest]] = {}
        self.is_any = asyncio.Event()

    @property
    def lane_ids(self) -> Sequence[int]:
        return list(self._lanes)

    def join(self, requests: Iterable[CommitRequest]) -> list[CommitRequest]:
        """Queue the requests of lanes that wait behind their earlier requests.

        Return the other requests.
        """
        others = []
        for request in requests:
            if request.lane_id in self._lanes:
                self._lanes[request.lane_id].append(request)
            else:
                others.append(request)
        return others

    def put_back(self, requests: Sequence[CommitRequest]) -> None:
        """Put requests whose commit met a lock first in their lanes."""
        for request in reversed(requests):
            self._lanes.setdefault(request.lane_id, deque()).appendleft(request)
        self.is_any.set()

    def take(self, lane_id: int) -> CommitRequest | None:
        """Take out the lane's first request that is still awaited; None without any."""
        requests = self._lanes.get(lane_id, deque())
        following = None
        while requests and following is None:
            request = requests.popleft()
            following = None if request.committed.done() else request
        if not requests:
            self._lanes.pop(lane_id, None)
        if not self._lanes:
            self.is_any.clear()
        return following
