"""The shards that a sender holds, and the lanes that it serves in these shards."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.errors import ReadOnlySqlTransaction

from delivery.database.connections import AWAY, may_write
from delivery.models.shard import shard_of
from delivery.senders.shards.connection import SenderConnection

log = logging.getLogger(__name__)

RECONNECT_SECONDS = 0.2
# A sender that lost the database when we did has this long to reconnect and take its shards back:
# its memory has the attempts in flight there, while a successor must treat them as in doubt.
GRACE_SECONDS = 2.0
# A lane that must not send yet checks again this often.
LOOK_SECONDS = 0.05


class LaneLostError(Exception):
    """Another sender has taken the lane: stop serving it, and record nothing."""


class ClaimedShards:
    """The shards locked on one connection. Await its coroutines one at a time: `SenderSession`."""

    def __init__(self, connection: SenderConnection) -> None:
        self._connection = connection
        self._epochs: dict[int, int] = {}
        # The lanes that are served under these epochs.
        self._lanes: set[int] = set()
        # Set after a reconnection until the shards are claimed again: another sender may have had
        # them meanwhile.
        self._is_reconnecting = False
        self.may_claim_at = float("-inf")

    @property
    def shards(self) -> Iterable[int]:
        """The shards of this sender, as far as it knows."""
        return self._epochs.keys()

    @property
    def claims(self) -> frozenset[tuple[int, int]]:
        """The shards with their epochs: a shard claimed again has another epoch."""
        return frozenset(self._epochs.items())

    def epoch_of(self, lane_id: int) -> int | None:
        """Return the epoch of a lane's shard; None if the shard is not ours."""
        return self._epochs.get(shard_of(lane_id))

    def begin(self, lane_id: int, *, epoch: int) -> None:
        """Begin to serve a lane; raise LaneLostError unless the shard is ours in this epoch."""
        if self.epoch_of(lane_id) != epoch:
            raise LaneLostError
        self._lanes.add(lane_id)

    def end(self, lane_id: int) -> None:
        """Stop serving a lane."""
        self._lanes.discard(lane_id)

    def is_serving(self, lane_id: int) -> bool:
        """True if the lane has been ours without a break since the beginning."""
        return lane_id in self._lanes

    def may_send(self, lane_id: int) -> bool:
        """True if an attempt of the lane may begin at this moment.

        See `delivery.senders.shards.connection`.
        """
        return lane_id in self._lanes and self._connection.is_leased and not self._is_reconnecting

    async def wait_until_it_may_send(self, lane_id: int) -> None:
        """Wait until the server has answered; raise LaneLostError if the lane is lost by then."""
        while not self.may_send(lane_id):
            if lane_id not in self._lanes:
                raise LaneLostError
            await asyncio.sleep(LOOK_SECONDS)

    async def claim(self, shards: Sequence[int]) -> set[int]:
        """Claim those of these shards that nobody holds, and return them."""
        locked = await self._connection.lock(shards)
        try:
            claimed = await self._connection.claim(locked)
        except psycopg.Error:
            await self._connection.release(locked)
            raise
        self._epochs |= claimed
        return set(claimed)

    async def release(self, shards: Sequence[int]) -> None:
        """Give shards back; a lane of theirs that is still served is lost."""
        held = [shard for shard in shards if self._epochs.pop(shard, None) is not None]
        self._drop_lost_lanes()
        await self._connection.release(held)

    async def reconnect(self) -> None:
        """Connect again and take the shards back, however long the database is away."""
        self._is_reconnecting = True
        while True:
            try:
                if await self._connection.take_slot():
                    await self._reclaim(await self._connection.lock(list(self._epochs)))
                    return
            except AWAY as error:
                log.debug("cannot connect", extra={"error": str(error)})
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _reclaim(self, locked: Sequence[int]) -> None:
        """Keep the shards that nobody else had meanwhile; work in other shards is lost."""
        claimed = await self._claim_back(locked)
        kept = {shard: epoch for shard, epoch in claimed.items() if self._epochs[shard] == epoch}
        # They are claimed again, as from any other sender.
        await self._connection.release([shard for shard in claimed if shard not in kept])
        self.may_claim_at = time.monotonic() + GRACE_SECONDS
        log.info(
            "connected again", extra={"shards": len(kept), "lost": len(self._epochs) - len(kept)}
        )
        self._epochs = kept
        self._drop_lost_lanes()
        self._is_reconnecting = False

    def _drop_lost_lanes(self) -> None:
        """Stop serving lanes whose shard is not ours."""
        self._lanes = {lane_id for lane_id in self._lanes if shard_of(lane_id) in self._epochs}

    async def _claim_back(self, locked: Sequence[int]) -> dict[int, int]:
        """Return the epochs of these shards.

        Hold their locks while the database takes no changes.
        """
        while True:
            try:
                return await self._connection.claim(locked)
            except ReadOnlySqlTransaction:
                if await may_write():
                    raise
                await asyncio.sleep(RECONNECT_SECONDS)
