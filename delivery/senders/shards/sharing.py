"""The shards of each sender, agreed on without messages, by the names of their connections.

Each shard belongs to one of the sharing senders by a hash of both (highest random weight), so a
sender that starts or ends moves only its own share. A sender is identified by its slot, which its
successor takes again. The advisory lock alone decides which sender serves a shard: while senders
disagree, a shard waits for a moment; its order is safe.

Few sharing senders commit many lanes' outcomes together; more of them use more processors. So only
the senders with the lowest slots share the work, as many as the sender with the lowest slot
decides: twice as many when these are busy, half as many when half of them could do it. The first
senders of all machines have lower slots than the second senders, so the work is spread over
machines before a machine has two parts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from delivery.models.shard import SHARDS

# The limit of senders in the whole installation.
MAX_SENDERS = 1_000
# As many slots are kept for the first senders of machines, for the second senders, and so on.
_SLOTS_PER_NUMBER = 100
# A sender that computes for this percentage of the time has no room for more work.
BUSY_PERCENT = 80
# Half as many senders would be this busy.
HALF_PERCENT = 50
# The work is spread after senders were busy for so long, and gathered after they were idle for so
# long.
SPREAD_SECONDS = 1.0
GATHER_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Member:
    """A running sender; `sharing`: how many senders are to share the work, in its view."""

    slot: int
    busy_percent: int
    sharing: int


def member_of(row: Mapping[str, Any]) -> Member:
    """Make a Member from a row of `members.sql`."""
    return Member(row["slot"], row["busy_percent"], row["sharing"])


def slots_for(number: int) -> Iterator[int]:
    """Yield all slots in the order in which a machine's sender with this number tries them.

    The slots kept for the number come first; the last group serves all higher numbers.
    """
    first = min(number * _SLOTS_PER_NUMBER, MAX_SENDERS - _SLOTS_PER_NUMBER)
    yield from range(first, first + _SLOTS_PER_NUMBER)
    yield from range(MAX_SENDERS)


def shards_of(slot: int, slots: Collection[int]) -> frozenset[int]:
    """Return the shards of the sender with this slot, if the senders with `slots` share."""
    if slot not in slots:
        return frozenset()
    return frozenset(shard for shard in range(SHARDS) if owner_of(shard, slots) == slot)


def owner_of(shard: int, slots: Collection[int]) -> int:
    """Return the slot of the sender that a shard belongs to."""
    return max(slots, key=lambda slot: (_weight(shard, slot), slot))


def _weight(shard: int, slot: int) -> int:
    # The finalizer of MurmurHash3 (32 bits): near numbers must not get near weights.
    mixed = ((shard + 1) * 0x9E3779B1 ^ (slot + 1) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ mixed >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return mixed ^ mixed >> 16


class Sharing:
    """One sender's view of the others, and of how many are to share the work."""

    def __init__(self) -> None:
        self.slots: frozenset[int] = frozenset()
        self.sharing = 1
        self._busy_since: float | None = None
        self._idle_since: float | None = None

    def update_members(self, own: Member, others: Sequence[Member], *, now: float) -> None:
        """Update the view from the senders that run at `now`, of the monotonic clock."""
        members = sorted([own, *(other for other in others if other.slot != own.slot)], key=_slot)
        first = members[0]
        if first.slot == own.slot:
            self.sharing = self._decide(members, now=now)
        else:
            self.sharing = first.sharing
            self._busy_since = self._idle_since = None
        self.slots = frozenset(member.slot for member in members[: max(self.sharing, 1)])

    def _decide(self, members: Sequence[Member], *, now: float) -> int:
        sharing = max(min(self.sharing, len(members)), 1)
        busy = [member.busy_percent for member in members[:sharing]]
        self._busy_since = _since(self._busy_since, min(busy) >= BUSY_PERCENT, now=now)
        self._idle_since = _since(
            self._idle_since, sum(busy) < HALF_PERCENT * (sharing / 2), now=now
        )
        if self._busy_since is not None and now - self._busy_since >= SPREAD_SECONDS:
            self._busy_since = None
            return min(2 * sharing, len(members))
        if (
            sharing > 1
            and self._idle_since is not None
            and now - self._idle_since >= GATHER_SECONDS
        ):
            self._idle_since = None
            return sharing // 2
        return sharing


def _slot(member: Member) -> int:
    return member.slot


def _since(moment: float | None, is_true: bool, *, now: float) -> float | None:
    """Return since when a condition has held; `moment` is the answer of the last look."""
    if not is_true:
        return None
    return now if moment is None else moment
