"""Strips: lanes drawn as queues, the head first and a block for each of the next deliveries."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from delivery.database.queries import array, planned_named_rows
from delivery.models import Lane
from delivery.models.message import public_id
from delivery.standing import waiting_counts
from delivery.standing.bounded_counts import Bounded
from delivery.standing.reading import standing_of_lanes
from delivery.standing.vocabulary import IN_TROUBLE, Standing, State

# Blocks of a strip: those beyond are a number.
BLOCKS = 16
# Colours of blocks in lanes.css; the subscriptions of a lane share them.
COLOURS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A waiting delivery. `colour` is the same for all deliveries of the subscription."""

    id: int
    message_id: int
    attempts: int
    subscription_id: int
    subscription: str
    event: str
    published_at: datetime

    @property
    def message(self) -> str:
        return public_id(self.message_id)

    @property
    def colour(self) -> int:
        return self.subscription_id % COLOURS


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A lane with the next deliveries; the first is the head.

    `waiting` counts the deliveries of ACTIVE subscriptions, including the blocks.
    """

    lane: Lane
    standing: Standing
    waiting: Bounded
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.lane)

    @property
    def state(self) -> State:
        return self.standing.state

    @property
    def is_stopped(self) -> bool:
        return self.state in IN_TROUBLE

    @property
    def behind(self) -> Bounded | None:
        """The number of deliveries behind the blocks; None if the blocks are all."""
        rest = self.waiting.found - len(self.blocks)
        return Bounded(rest, self.waiting.limit - len(self.blocks)) if rest > 0 else None


def read_strips(lane_ids: Sequence[int]) -> list[Strip]:
    """Return a strip for each existing lane among these, in the given order."""
    if not lane_ids:
        return []
    lanes = {
        lane.pk: lane
        for lane in Lane.objects.select_related("subscriber")
        .defer("run_ids", "run_attempts")
        .filter(pk__in=lane_ids)
    }
    blocks: dict[int, list[Block]] = defaultdict(list)
    for row in planned_named_rows("next_in_lanes", {"ids": array(lane_ids), "rows": BLOCKS}):
        lane_id = row.pop("lane_id")
        blocks[lane_id].append(Block(**row))
    counted = waiting_counts.waiting_of_lanes(lane_ids)
    standings = standing_of_lanes(lanes.values(), is_counted=False)
    return [
        Strip(
            lane=lanes[lane_id],
            standing=standings[lane_id],
            waiting=counted[lane_id],
            blocks=blocks[lane_id],
        )
        for lane_id in lane_ids
        if lane_id in lanes
    ]
