"""Reading runs: the requests of many lanes are answered by one statement.

Nothing here holds a lock, so a lost connection only means to read again.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from psycopg.rows import dict_row

from delivery.database.connections import AWAY, connect
from delivery.database.statements import statement
from delivery.senders.clock import seconds_since_boot
from delivery.senders.endpoints import endpoint_of
from delivery.senders.parcel import Endpoint, Group, Parcel

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.2
# Of one statement, until that is taken for a fault of ours.
MOST_REFUSALS = 3
# Making parcels of very many rows at once would hold up the answers that arrive meanwhile. So many lanes are read together
# as had about ROWS_A_STATEMENT rows the last time: a statement for each ten of a hundred lanes that have one delivery
# each took twice as long as one for all.
ROWS_A_STATEMENT = 50
FEWEST_WISHES, MOST_WISHES = 10, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How much a lane wants to read: at most so many rows and bytes, none of those it holds already."""

    lane_id: int
    rows: int
    skipped_rows: int
    max_bytes: int
    held: tuple[int, ...] = ()


class Reader:
    """The reading connection of one sender. `run` must be running while `parcels` is awaited."""

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._waiting: list[tuple[RunRequest, asyncio.Future[list[Parcel]]]] = []
        self._arrived = asyncio.Event()
        self._turn = asyncio.Lock()
        self._together = FEWEST_WISHES
        self._connection: psycopg.AsyncConnection | None = None
        # How often it has connected.
        self.connected = 0

    async def parcels(self, wish: RunRequest) -> list[Parcel]:
        """Return the lane's oldest deliveries that may be sent, in order; waits while the database is away."""
        answer: asyncio.Future[list[Parcel]] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, answer))
        self._arrived.set()
        return await answer

    async def run(self) -> None:
        """Answer wishes, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                wishes, self._waiting = self._waiting[: self._together], self._waiting[self._together :]
                # A lane that gave up a wish may have made another.
                await self._grant([(wish, answer) for wish, answer in wishes if not answer.done()])

    async def _grant(self, wishes: "list[tuple[RunRequest, asyncio.Future[list[Parcel]]]]") -> None:
        asked_at = seconds_since_boot()
        try:
            rows = await self.fetch("read_runs", _columns([wish for wish, _ in wishes]))
        except psycopg.Error as error:
            for _, answer in wishes:
                if not answer.done():
                    answer.set_exception(error)
            return
        self._together = wishes_together(len(wishes), rows=len(rows))
        found = _by_wish(rows, asked_at=asked_at)
        for place, (_, answer) in enumerate(wishes, start=1):
            if not answer.done():
                answer.set_result(found.get(place, []))

    async def endpoints(self, subscription_ids: Sequence[int]) -> list[Endpoint]:
        rows = await self.fetch("endpoints", {"subscription": list(subscription_ids)})
        return [endpoint_of(row) for row in rows]

    async def fetch(self, name: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Execute a named statement that reads, as often as it takes while the database is away.

        What the database refuses time and again is raised: it is a fault of ours, and must stop nobody else.
        """
        refused = 0
        while True:
            async with self._turn:
                try:
                    return await self._fetch(name, parameters)
                except psycopg.Error as error:
                    refused += not isinstance(error, AWAY)
                    if refused >= MOST_REFUSALS:
                        raise
                    log.warning("cannot read", extra={"error": str(error)})
                    # A migration may have made a prepared plan useless: a new connection knows none.
                    await self.close()
            await asyncio.sleep(RECONNECT_SECONDS)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _fetch(self, name: str, parameters: dict[str, Any] | None) -> list[dict[str, Any]]:
        if self._connection is None:
            self._connection = await connect(self._name)
            self.connected += 1
        async with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(cast("Any", statement(name)), parameters)
            return await cursor.fetchall()


def wishes_together(wishes: int, *, rows: int) -> int:
    """Return how many wishes to answer by the next statement, when so many had so many rows."""
    return min(max(ROWS_A_STATEMENT * wishes // max(rows, 1), FEWEST_WISHES), MOST_WISHES)


def _columns(wishes: Sequence[RunRequest]) -> dict[str, Any]:
    return {
        "lane": [wish.lane_id for wish in wishes],
        "rows": [wish.rows for wish in wishes],
        "skipped_rows": [wish.skipped_rows for wish in wishes],
        "bytes": [wish.max_bytes for wish in wishes],
        "held": ["{" + ",".join(map(str, wish.held)) + "}" for wish in wishes],
    }


def groups_of(rows: Sequence[dict[str, Any]], *, asked_at: float, generation: int = 0) -> list[Group]:
    """Make groups of the rows of `read_groups.sql`, or of those of `read_due.sql`, each a group of its own.

    `asked_at`, in seconds since boot, was before they were read: so what has a time to live is not sent past it. So
    was the `generation`: what is cancelled while it is read is not sent.
    """
    groups: dict[tuple[int, int | None, int], Group] = {}
    for row in rows:
        number = row["queue_group"]
        key = row["message_id"], number, row["id"] if number is None else 0
        group = groups.get(key)
        if group is None:
            groups[key] = group = Group(row["message_id"], number, left=[], generation=generation)
        body = group.left[0].body if group.left else row["body"]
        group.left.append(_parcel(row, body, asked_at=asked_at))
    return list(groups.values())


def _by_wish(rows: Sequence[dict[str, Any]], *, asked_at: float) -> dict[int, list[Parcel]]:
    found: defaultdict[int, list[Parcel]] = defaultdict(list)
    for row in rows:
        found[row["wish"]].append(_parcel(row, row["body"], asked_at=asked_at))
    return found


def _parcel(row: dict[str, Any], body: bytes, *, asked_at: float) -> Parcel:
    seconds_left = row["seconds_left"]
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
        deadline=None if seconds_left is None else asked_at + seconds_left,
        server_started_at=row["server_started_at"],
        replay_id=row["replay_id"],
        headers=row["headers"],
    )
