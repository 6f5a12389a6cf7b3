"""The runs of ordered lanes: the requests of many lanes are answered by one statement.

There are two ways to a run, each with a queue of requests. Lanes that send read ahead on the reading connection, as much as they may
hold, and record the run by a commit afterwards. A lane that was idle begins: its run is short, and is read and recorded by one statement
on the committing connection, which spares a message to an idle lane a round trip and a turn of the committer.

    read   reader: read_runs ─▶ settler: record_runs ─▶ send
    begin  settler: begin_runs ─▶ send

What begins is fenced as every commit is: the statement runs on the session that holds the locks, and only for lanes that are served
under them at that moment. Nothing of the lane is in hand, so the run that it replaces names nothing that was sent and is not
settled. If the statement fails (the connection is lost, somebody has locked a lane's row, a lane is lost) the lane takes
the other way, whose commit finds out what is true: whether the run was recorded does not matter, for nothing of it was sent.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from delivery.senders.clock import seconds_since_boot
from delivery.senders.holding import LaneLostError
from delivery.senders.parcel import Parcel
from delivery.senders.rows import parcel_of
from delivery.sql import statement

# Making parcels of very many rows at once would hold up the answers that arrive meanwhile. So many lanes are read together
# as had about ROWS_A_STATEMENT rows the last time: a statement for each ten of a hundred lanes that have one delivery
# each took twice as long as one for all.
ROWS_A_STATEMENT = 50
FEWEST_REQUESTS, MOST_REQUESTS = 10, 50

# Beside a change of rows each message is read by a function: see `delivery.database`.
BEGIN_RUNS = statement("begin_runs").replace(
    "{read_runs}",
    statement("read_runs").replace(
        "JOIN delivery_message message", "JOIN LATERAL delivery_read_message(picked.message_id) AS message"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How much a lane requests: at most so many rows and bytes, nothing that it holds already."""

    lane_id: int
    rows: int
    skipped_rows: int
    max_bytes: int
    held: tuple[int, ...] = ()


Fetch = Callable[[Sequence[RunRequest]], Awaitable[list[dict[str, Any]]]]


class Runs:
    """One queue of requests, answered by `fetch`. `run` must be running while `parcels` is awaited."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._waiting: list[tuple[RunRequest, asyncio.Future[list[Parcel]]]] = []
        self._arrived = asyncio.Event()
        self._together = FEWEST_REQUESTS

    async def parcels(self, request: RunRequest) -> list[Parcel]:
        """Return the lane's oldest deliveries that may be sent, in order; raises what `fetch` raises."""
        answer: asyncio.Future[list[Parcel]] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, answer))
        self._arrived.set()
        return await answer

    async def run(self) -> None:
        """Answer requests, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                taken, self._waiting = self._waiting[: self._together], self._waiting[self._together :]
                # A lane that gave up a request may have made another.
                await self._answer([(request, answer) for request, answer in taken if not answer.done()])

    async def _answer(self, taken: Sequence[tuple[RunRequest, asyncio.Future[list[Parcel]]]]) -> None:
        asked_at = seconds_since_boot()
        try:
            rows = await self._fetch([request for request, _ in taken])
        except (psycopg.Error, LaneLostError) as error:
            for _, answer in taken:
                if not answer.done():
                    answer.set_exception(error)
            return
        self._together = requests_together(len(taken), rows=len(rows))
        found: defaultdict[int, list[Parcel]] = defaultdict(list)
        for row in rows:
            found[row["place"]].append(parcel_of(row, row["body"], asked_at=asked_at))
        for place, (_, answer) in enumerate(taken, start=1):
            if not answer.done():
                answer.set_result(found[place])


def requests_together(requests: int, *, rows: int) -> int:
    """Return how many requests to answer by the next statement, when so many had so many rows."""
    return min(max(ROWS_A_STATEMENT * requests // max(rows, 1), FEWEST_REQUESTS), MOST_REQUESTS)


def columns_of(requests: Sequence[RunRequest]) -> dict[str, Any]:
    """Return the parameters of `read_runs.sql`."""
    return {
        "lane": [request.lane_id for request in requests],
        "rows": [request.rows for request in requests],
        "skipped_rows": [request.skipped_rows for request in requests],
        "bytes": [request.max_bytes for request in requests],
        "held": ["{" + ",".join(map(str, request.held)) + "}" for request in requests],
    }
