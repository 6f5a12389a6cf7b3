"""Reading runs: one statement answers the requests of many lanes.

The reading connection holds no locks, so after losing it the reads are simply repeated.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row

from delivery.database.connections import AWAY, connect_sender
from delivery.database.statements import statement
from delivery.lifecycle.traces import traces
from delivery.senders.clock import seconds_since_boot
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint, Group, Parcel
from delivery.senders.run_result import PieceLimits

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.2
# After this many refusals of a statement we treat the error as a fault of ours.
MOST_REFUSALS = 3
# Making parcels of very many rows at once would delay answers that arrive meanwhile. So the number
# of lanes read together is the number that had about ROWS_A_STATEMENT rows the last time: ten
# statements for a hundred lanes with a delivery each took twice as long as a single statement.
ROWS_A_STATEMENT = 50
MIN_REQUESTS, MAX_REQUESTS = 10, 50
# While thousands of lanes wait, the length of the queue matters more than that delay. So more are
# read together then: a part of those that wait, up to these limits.
QUEUE_PARTS = 20
QUEUED_REQUESTS = 250
QUEUED_BYTES = 8 * 1024 * 1024
# A statement rarely waits for the connection for longer.
QUEUED_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The limits of a lane's read: rows, bytes, and no deliveries in the lane's memory."""

    lane_id: int
    limits: PieceLimits
    max_bytes: int
    in_memory: tuple[int, ...] = ()


class ReadConnection:
    """The reading connection of a sender. `run` must be running while `parcels` is awaited."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._waiting: list[tuple[RunRequest, asyncio.Future[list[Parcel]]]] = []
        self._arrived = asyncio.Event()
        self._lock = asyncio.Lock()
        self._together = MIN_REQUESTS
        self._connection: psycopg.AsyncConnection | None = None
        # The number of connections made so far.
        self.connected = 0
        # When the statement was sent whose rows `fetch` returned last, in seconds since boot. Read
        # this before waiting for anything else: another `fetch` may follow.
        self.requested_at = seconds_since_boot()
        # Whether the reads return since when a delivery is due.
        self.is_traced = traces() is not None

    async def parcels(self, request: RunRequest) -> list[Parcel]:
        """Return the lane's oldest sendable deliveries, in the order of the run.

        Waits while the database is away.
        """
        answer: asyncio.Future[list[Parcel]] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._arrived.set()
        return await answer

    async def run(self) -> None:
        """Answer requests until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                requests, self._waiting = (
                    self._waiting[: self._together],
                    self._waiting[self._together :],
                )
                # A lane that cancelled a request may have made another.
                await self._grant(
                    [(request, answer) for request, answer in requests if not answer.done()]
                )

    async def _grant(
        self, requests: "list[tuple[RunRequest, asyncio.Future[list[Parcel]]]]"
    ) -> None:
        parameters = _columns([request for request, _ in requests])
        try:
            rows = await self.fetch("read_runs", parameters | {"is_traced": self.is_traced})
        except psycopg.Error as error:
            for _, answer in requests:
                if not answer.done():
                    answer.set_exception(error)
            return
        self._together = requests_together(
            len(requests),
            rows=len(rows),
            size=sum(len(row["body"]) for row in rows),
            waiting=len(self._waiting),
        )
        parcels = _by_request(rows, requested_at=self.requested_at)
        for place, (_, answer) in enumerate(requests, start=1):
            if not answer.done():
                answer.set_result(parcels.get(place, []))

    async def endpoints(self, subscription_ids: Sequence[int]) -> list[Endpoint]:
        rows = await self.fetch("endpoints", {"subscription": list(subscription_ids)})
        return [endpoint_of(row) for row in rows]

    async def fetch(
        self, name: str, parameters: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Execute a named reading statement; repeat it while the database is away.

        An error that the database returns repeatedly is raised: it is a fault of ours, and must
        stop no other lane.
        """
        refused = 0
        while True:
            async with self._lock:
                try:
                    return await self._fetch(name, parameters)
                except psycopg.Error as error:
                    refused += not isinstance(error, AWAY)
                    if refused >= MOST_REFUSALS:
                        raise
                    log.warning("cannot read", extra={"error": str(error)})
                    # A migration may have invalidated a prepared plan: a new connection has none.
                    await self.close()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _fetch(self, name: str, parameters: dict[str, Any] | None) -> list[dict[str, Any]]:
        if self._connection is None:
            self._connection = await connect_sender(self._name)
            self.connected += 1
        async with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            self.requested_at = seconds_since_boot()
            await cursor.execute(cast("Any", statement(name)), parameters)
            return await cursor.fetchall()


def requests_together(requests: int, *, rows: int, size: int = 0, waiting: int = 0) -> int:
    """Return how many requests the next statement answers.

    The last statement answered `requests` with `rows` rows, whose bodies have `size` bytes;
    `waiting` requests are in the queue.
    """
    rows, size = max(rows, 1), max(size, 1)
    usual = min(max(ROWS_A_STATEMENT * requests // rows, MIN_REQUESTS), MAX_REQUESTS)
    queued = min(waiting // QUEUE_PARTS, QUEUED_REQUESTS)
    return max(usual, min(queued * requests // rows, queued, QUEUED_BYTES * requests // size))


def _columns(requests: Sequence[RunRequest]) -> dict[str, Any]:
    return {
        "lane": [request.lane_id for request in requests],
        "rows": [request.limits.rows for request in requests],
        "fresh_rows": [request.limits.fresh_rows for request in requests],
        "skipped_rows": [request.limits.skipped_rows for request in requests],
        "fresh_first": [request.limits.is_fresh_first for request in requests],
        "resting": [_array(request.limits.resting) for request in requests],
        "seconds": [_seconds_since(request.limits.began_at) for request in requests],
        "bytes": [request.max_bytes for request in requests],
        "in_memory": [_array(request.in_memory) for request in requests],
    }


def _array(ids: Iterable[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"


def _seconds_since(began_at: float | None) -> float | None:
    """Return the seconds since then, and as many as the statement may wait for others."""
    return None if began_at is None else seconds_since_boot() - began_at + QUEUED_SECONDS


def groups_of(
    rows: Sequence[dict[str, Any]], *, requested_at: float, generation: int = 0
) -> list[Group]:
    """Make groups from rows of `read_groups.sql`, or one group for each row of `read_due.sql`.

    `requested_at`, in seconds since boot, is from before the read: so deliveries with a time to
    live are not sent past it, and `due_at` is not too late. `generation` is from before the read as
    well: so a delivery cancelled during the read is not sent.
    """
    groups: dict[tuple[int, int | None, int], Group] = {}
    for row in rows:
        number = row["queue_group"]
        key = row["message_id"], number, row["id"] if number is None else 0
        group = groups.get(key)
        if group is None:
            groups[key] = group = Group(row["message_id"], number, left=[], generation=generation)
        body = group.left[0].body if group.left else row["body"]
        group.left.append(_parcel(row, body, requested_at=requested_at))
    return list(groups.values())


def _by_request(rows: Sequence[dict[str, Any]], *, requested_at: float) -> dict[int, list[Parcel]]:
    parcels: defaultdict[int, list[Parcel]] = defaultdict(list)
    for row in rows:
        parcels[row["number"]].append(_parcel(row, row["body"], requested_at=requested_at))
    return parcels


def _parcel(row: dict[str, Any], body: bytes, *, requested_at: float) -> Parcel:
    seconds_left, seconds_due = row["seconds_left"], row["seconds_due"]
    return Parcel(
        delivery_id=row["id"],
        subscription_id=row["subscription_id"],
        message_id=row["message_id"],
        attempts=row["attempts"],
        attempts_before=row["attempts_before"],
        is_skipped=row["skipped"],
        redelivery=row["redelivery"],
        event=row["event"],
        content_type=row["content_type"],
        body=body,
        callback_id=row.get("callback_id"),
        url=row.get("callback_url") or "",
        origin=row.get("callback_origin") or "",
        seconds_since_first=row.get("seconds_since_first"),
        deadline=None if seconds_left is None else requested_at + seconds_left,
        due_at=None if seconds_due is None else requested_at - seconds_due,
        server_started_at=row["server_started_at"],
        replay_id=row["replay_id"],
        headers=row["headers"],
    )
