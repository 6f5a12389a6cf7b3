"""State shared by all lanes of a sender: connections, HTTP client, and known endpoints."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from delivery.outcome import Outcome
from delivery.senders.changes import Changed
from delivery.senders.clock import seconds_since_boot
from delivery.senders.commits.group_commit import GroupCommit
from delivery.senders.entries import Entry, Settlement
from delivery.senders.http.client import HttpClient
from delivery.senders.http.exchange import NotBegunError
from delivery.senders.http.request import Request, make_request
from delivery.senders.lanes.lane import SenderLane
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.read_connection import ReadConnection
from delivery.senders.successes import Successes
from delivery.states import OutcomeClass

# The limit of unsent deliveries in memory, shared by a sender's lanes. Each lane gets MIN_ROWS and
# a body regardless, so the memory of a process grows with its lanes: 5,000 lanes with bodies of 1
# MiB hold 5 GB.
PREFETCH_BYTES = 32 * 1024 * 1024
PREFETCH_ROWS = 10_000
MIN_ROWS = 8


class SenderContext:
    """The state of a sender; `lanes` are the lanes that the sender serves now."""

    def __init__(
        self, *, group_commit: GroupCommit, read_connection: ReadConnection, client: HttpClient
    ) -> None:
        self.group_commit = group_commit
        self.session = group_commit.session
        self.read_connection = read_connection
        self.client = client
        self.endpoints: dict[int, Endpoint] = {}
        self.lanes: dict[int, SenderLane] = {}
        self.successes = Successes()
        # Whether all sending is HELD, as of the last look.
        self.is_held = False
        self._requested: set[int] = set()
        self._loading: asyncio.Task[None] | None = None

    async def send(
        self, lane_id: int, parcel: Parcel, *, request: Request | None = None
    ) -> Outcome:
        """Make one attempt; raise LaneLostError if another sender may hold the lane by then.

        The attempt can be put off until its first byte is written: the lease may expire before
        there is a connection.
        """
        endpoint = self.endpoints[parcel.subscription_id]
        while True:
            if not self.session.claimed.may_send(lane_id):
                await self.session.claimed.wait_until_it_may_send(lane_id)
            try:
                return await self.client.send(
                    parcel,
                    endpoint,
                    request=request,
                    may_begin=partial(self.session.claimed.may_send, lane_id),
                )
            except NotBegunError:
                continue

    async def commit(self, lane: SenderLane, *entries: Entry, is_urgent: bool = True) -> None:
        """Return when the entries are on disk, if there are any."""
        if entries:
            await self.group_commit.commit(lane.id, *entries, is_urgent=is_urgent)

    def make_request(self, parcel: Parcel) -> Request | None:
        """Make the request of a parcel that will be sent soon."""
        endpoint = self.endpoints.get(parcel.subscription_id)
        return (
            make_request(parcel, endpoint, now=datetime.now(UTC)) if endpoint is not None else None
        )

    async def load(self, subscription_ids: Iterable[int]) -> None:
        """Load these subscriptions unless they are loaded.

        Thousands of lanes begin at once: a single statement loads all subscriptions requested by
        then, and all lanes continue after it.
        """
        unknown = {id for id in subscription_ids if id not in self.endpoints}
        self._requested |= unknown
        while not self._requested.isdisjoint(unknown):
            if self._loading is None or self._loading.done():
                self._loading = asyncio.create_task(self._load_requested())
            # A cancelled caller must not end the loading for the others.
            await asyncio.shield(self._loading)

    async def _load_requested(self) -> None:
        requested = set(self._requested)
        try:
            await self.refresh(requested.difference(self.endpoints))
        finally:
            # An endpoint that cannot be loaded must not be requested again with all others.
            self._requested -= requested

    async def refresh(self, subscription_ids: Collection[int]) -> list[Endpoint]:
        """Read these subscriptions again; return those that have changed."""
        endpoints = await self.read_connection.endpoints(list(subscription_ids))
        changed = [
            endpoint
            for endpoint in endpoints
            if self.endpoints.get(endpoint.subscription_id) != endpoint
        ]
        self.endpoints.update({endpoint.subscription_id: endpoint for endpoint in changed})
        return changed

    def stale(self, changed: Changed) -> Collection[int]:
        """Return the loaded subscriptions of which another version is in the database."""
        if changed.is_all:
            return list(self.endpoints)
        known = self.endpoints
        return [
            id
            for id, version in changed.versions.items()
            if id in known and known[id].version != version
        ]

    def set_rates(self, rates: Mapping[int, float]) -> None:
        """Set these rates for lanes that catch up; the other lanes send as fast as they can."""
        for lane in self.lanes.values():
            lane.set_rate(rates.get(lane.id))

    def lanes_of(self, endpoints: Collection[Endpoint]) -> Sequence[SenderLane]:
        """Return the lanes that send to these endpoints."""
        lane_ids = {endpoint.lane_id for endpoint in endpoints}
        subscription_ids = {endpoint.subscription_id for endpoint in endpoints}
        return [
            lane
            for lane in self.lanes.values()
            if lane.id in lane_ids or not subscription_ids.isdisjoint(lane.known_keys)
        ]

    async def refresh_after_failure(self, settlement: Settlement) -> None:
        """Check whether a counted failure has disabled the URL.

        If so, the next delivery is not sent.
        """
        if (
            settlement.counted_subscription_id is not None
            and settlement.outcome.outcome is not OutcomeClass.SUCCESS
        ):
            await self.refresh([settlement.counted_subscription_id])

    async def may_send(self, subscription_id: int) -> bool:
        """Return whether the database allows sending to this subscription now.

        The subscription must not be held. If the circuit breaker has disabled its URL, one attempt
        is allowed at intervals: True then means that this sender has claimed the attempt.
        """
        await self.refresh([subscription_id])
        endpoint = self.endpoints[subscription_id]
        if not endpoint.is_active or not endpoint.is_disabled:
            return endpoint.is_active
        return bool(
            await self.read_connection.fetch("claim_probe", {"subscription": subscription_id})
        )

    def is_overdue(self, parcel: Parcel) -> bool:
        """True if the parcel must not be sent any more.

        The parcel has expired, or is VOLATILE and was read under an earlier start of the database
        server. Call this after the run naming the parcel is committed. An attempt that begins in
        time is then in a run before the parcel expires, and the duty that settles expired
        deliveries finds it there. A VOLATILE message that a server crash undid was read from the
        server before the crash, and is not sent: another message may get its number.
        """
        if parcel.deadline is not None and seconds_since_boot() >= parcel.deadline:
            return True
        return parcel.is_volatile and parcel.server_started_at != self.session.server_started_at

    def rows_of_a_lane(self) -> int:
        """Return how many deliveries a lane may hold, so that every lane gets a share."""
        return max(MIN_ROWS, PREFETCH_ROWS // max(len(self.lanes), 1))

    def bytes_of_a_lane(self) -> int:
        return PREFETCH_BYTES // max(len(self.lanes), 1)
