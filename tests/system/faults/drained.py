"""The conditions for a drained mailbox after any kill, in its clients' logs and its history."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

from tests.system.faults.draining import VISIBILITY_SECONDS, Draining

# A lease is timed by the database's clock, the clients' logs by the machine's.
GRACE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Fetch:
    """One fetch of one message, at a moment between the two times."""

    receive_count: int
    receipt: str
    asked_at: float
    answered_at: float


def insist(draining: Draining) -> None:
    """Check that each message was acknowledged exactly once, and no lease was broken."""
    fetches = _fetches(draining)
    acknowledged = _acknowledged(draining)
    assert set(fetches) == set(draining.published)
    for message, found in fetches.items():
        _insist_on_turns(message, found)
        assert sum(acknowledged[fetch.receipt] for fetch in found) == 1, message
    assert acknowledged.total() == len(draining.published)
    _insist_on_history(draining, fetches, acknowledged)


def _insist_on_turns(message: str, found: list[Fetch]) -> None:
    """Check that no two clients held it at once: it came again after its visibility."""
    for earlier, later in pairwise(found):
        assert earlier.receive_count < later.receive_count, message
        free_at = earlier.asked_at + VISIBILITY_SECONDS - GRACE_SECONDS
        assert later.answered_at > free_at, (message, earlier, later)


def _insist_on_history(
    draining: Draining, fetches: dict[str, list[Fetch]], acknowledged: Counter[str]
) -> None:
    """Check the broker's history: every fetch is an attempt, and the last one was acknowledged."""
    settled = draining.settled()
    assert set(settled) == set(draining.published)
    for message, delivery in settled.items():
        (fetch,) = (fetch for fetch in fetches[message] if acknowledged[fetch.receipt])
        assert delivery.status == "DELIVERED", delivery
        assert delivery.receive_count == delivery.attempts == fetch.receive_count, delivery
        assert delivery.outcomes == ["UNACKNOWLEDGED"] * (delivery.attempts - 1) + [
            "ACKNOWLEDGED"
        ], delivery


def _fetches(draining: Draining) -> dict[str, list[Fetch]]:
    """Return the fetches of each message, in the order in which they happened."""
    fetches: defaultdict[str, list[Fetch]] = defaultdict(list)
    for line in draining.lines("fetched"):
        for message, count, receipt in line["of"]:
            fetches[message].append(Fetch(count, receipt, line["asked_at"], line["answered_at"]))
    for found in fetches.values():
        found.sort(key=lambda fetch: fetch.receive_count)
    return dict(fetches)


def _acknowledged(draining: Draining) -> Counter[str]:
    """Return how often each receipt was acknowledged."""
    return Counter(
        receipt for line in draining.lines("acknowledged") for receipt, ok in line["of"] if ok
    )
