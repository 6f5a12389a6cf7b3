"""What all lanes of one sender share: its connections, its client, and what it knows of endpoints."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from delivery.outcome import Outcome
from delivery.senders.changes import Changed
from delivery.senders.clock import seconds_since_boot
from delivery.senders.connector import NotBegunError
from delivery.senders.entries import Entry, Settlement
from delivery.senders.http import HttpClient
from delivery.senders.lane import Lane
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.reader import Reader
from delivery.senders.request import Request, make_request
from delivery.senders.settler import Settler
from delivery.senders.successes import Successes
from delivery.states import OutcomeClass

# The unsent deliveries that a sender may hold, shared by its lanes. Each lane gets MIN_ROWS and one body all
# the same, so the memory of a process grows with its lanes: 5,000 lanes with bodies of 1 MiB hold 5 GB.
PREFETCH_BYTES = 32 * 1024 * 1024
PREFETCH_ROWS = 10_000
MIN_ROWS = 8


class SenderContext:
    """Made once a sender; `lanes` are those that the sender serves now."""

    def __init__(self, *, settler: Settler, reader: Reader, client: HttpClient) -> None:
        self.settler = settler
        self.reader = reader
        self.client = client
        self.endpoints: dict[int, Endpoint] = {}
        self.lanes: dict[int, Lane] = {}
        self.successes = Successes()
        # Whether all sending is HELD, as far as was heard.
        self.is_held = False
        self._asked: set[int] = set()
        self._asking = asyncio.Lock()

    async def send(self, lane_id: int, parcel: Parcel, *, request: Request | None = None) -> Outcome:
        """Make one attempt; raises LaneLostError if another sender may have the lane by the time it could begin.

        Until its first byte is written the attempt can be put off: the lease may be over by the time there is a connection.
        """
        endpoint = self.endpoints[parcel.subscription_id]
        while True:
            if not self.settler.holding.may_send(lane_id):
                await self.settler.holding.wait_until_it_may_send(lane_id)
            try:
                return await self.client.send(
                    parcel,
                    endpoint,
                    request=request,
                    may_begin=partial(self.settler.holding.may_send, lane_id),
                )
            except NotBegunError:
                continue

    async def commit(self, lane: Lane, *entries: Entry) -> None:
        """Return when the entries are on disk, if there are any."""
        if entries:
            await self.settler.commit(lane.id, *entries)

    def make_request(self, parcel: Parcel) -> Request | None:
        """Make the request of a parcel that is sent soon."""
        endpoint = self.endpoints.get(parcel.subscription_id)
        return make_request(parcel, endpoint, now=datetime.now(UTC)) if endpoint is not None else None

    async def know(self, subscription_ids: Iterable[int]) -> None:
        """Make sure that these subscriptions are known."""
        unknown = {id for id in subscription_ids if id not in self.endpoints}
        if not unknown:
            return
        self._asked |= unknown
        async with self._asking:
            # One statement answers all that waited here: thousands of lanes begin at once.
            asked = [id for id in self._asked if id not in self.endpoints]
            if asked:
                await self.refresh(asked)
            self._asked.difference_update(asked)

    async def refresh(self, subscription_ids: Collection[int]) -> list[Endpoint]:
        """Read these subscriptions again; return those that differ from what was known."""
        found = await self.reader.endpoints(list(subscription_ids))
        changed = [endpoint for endpoint in found if self.endpoints.get(endpoint.subscription_id) != endpoint]
        self.endpoints.update({endpoint.subscription_id: endpoint for endpoint in changed})
        return changed

    def stale(self, changed: Changed) -> Collection[int]:
        """Return the subscriptions of which another version is known."""
        if changed.is_all:
            return list(self.endpoints)
        known = self.endpoints
        return [
            id for id, version in changed.versions.items() if id in known and known[id].version != version
        ]

    def pace(self, rates: Mapping[int, float]) -> None:
        """Let lanes catch up at these rates, and the others send as fast as they can."""
        for lane in self.lanes.values():
            lane.keep_pace(rates.get(lane.id))

    def lanes_of(self, endpoints: Collection[Endpoint]) -> Sequence[Lane]:
        """Return the lanes that send to these endpoints."""
        lane_ids = {endpoint.lane_id for endpoint in endpoints}
        subscription_ids = {endpoint.subscription_id for endpoint in endpoints}
        return [
            lane
            for lane in self.lanes.values()
            if lane.id in lane_ids or not subscription_ids.isdisjoint(lane.places)
        ]

    async def see_circuit(self, settlement: Settlement) -> None:
        """After a failure was counted, see whether it has disabled the URL: the next is not sent if so."""
        if settlement.circuit is not None and settlement.outcome.outcome is not OutcomeClass.SUCCESS:
            await self.refresh([settlement.circuit])

    async def may_send(self, subscription_id: int) -> bool:
        """Look in the database whether it may be sent to now.

        It must not be held. When the circuit breaker has disabled its URL, one attempt is let through every
        so often: True means that it is ours.
        """
        await self.refresh([subscription_id])
        endpoint = self.endpoints[subscription_id]
        if not endpoint.is_active or not endpoint.is_disabled:
            return endpoint.is_active
        return bool(await self.reader.fetch("claim_probe", {"subscription": subscription_id}))

    def is_overdue(self, parcel: Parcel) -> bool:
        """Whether it must not be sent any more: its time to live is over, or the server that a VOLATILE one is of.

        Ask after the run that names it is committed. Then what begins to be sent in time stands in a run
        before it expires, where whoever settles what expired finds it. And what a crash of the server took
        back was read from that server, and is not sent: another message may get its number.
        """
        if parcel.deadline is not None and seconds_since_boot() >= parcel.deadline:
            return True
        return parcel.is_volatile and parcel.server_started_at != self.settler.server_started_at

    def rows_of_a_lane(self) -> int:
        """How many deliveries a lane may hold, so that all may."""
        return max(MIN_ROWS, PREFETCH_ROWS // max(len(self.lanes), 1))

    def bytes_of_a_lane(self) -> int:
        return PREFETCH_BYTES // max(len(self.lanes), 1)
