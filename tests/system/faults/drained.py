"""What has to hold of a drained mailbox, whoever was killed: seen from what its clients were told, and from its history."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

from tests.system.faults.draining import VISIBILITY_SECONDS, Draining

# A lease is of the database's clock, what clients write down of the machine's.
GRACE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Fetch:
    """One message as it was handed out once. It was so at a moment between the two times."""

    receive_count: int
    receipt: str
    asked_at: float
    answered_at: float


def insist(draining: Draining) -> None:
    """Each message was acknowledged exactly once, none was lost, and nobody was given what somebody else held."""
    fetches = _fetches(draining)
    acknowledged = _acknowledged(draining)
    assert set(fetches) == set(draining.published)
    for message, found in fetches.items():
        _insist_on_turns(message, found)
        assert sum(acknowledged[fetch.receipt] for fetch in found) == 1, message
    assert acknowledged.total() == len(draining.published)
    _insist_on_history(draining, fetches, acknowledged)


def _insist_on_turns(message: str, found: list[Fetch]) -> None:
    """It was never with two at once: it came again only when its visibility was over."""
    for earlier, later in pairwise(found):
        assert earlier.receive_count < later.receive_count, message
        free_at = earlier.asked_at + VISIBILITY_SECONDS - GRACE_SECONDS
        assert later.answered_at > free_at, (message, earlier, later)


def _insist_on_history(
    draining: Draining, fetches: dict[str, list[Fetch]], acknowledged: Counter[str]
) -> None:
    """The broker says the same: every fetch is an attempt, and the last of them was acknowledged."""
    settled = draining.settled()
    assert set(settled) == set(draining.published)
    for message, delivery in settled.items():
        (fetch,) = (fetch for fetch in fetches[message] if acknowledged[fetch.receipt])
        assert delivery.status == "DELIVERED", delivery
        assert delivery.receive_count == delivery.attempts == fetch.receive_count, delivery
        assert delivery.outcomes == ["UNACKNOWLEDGED"] * (delivery.attempts - 1) + ["ACKNOWLEDGED"], delivery


def _fetches(draining: Draining) -> dict[str, list[Fetch]]:
    """What clients were given, by message, in the order in which it was handed out."""
    fetches: defaultdict[str, list[Fetch]] = defaultdict(list)
    for line in draining.lines("fetched"):
        for message, count, receipt in line["of"]:
            fetches[message].append(Fetch(count, receipt, line["asked_at"], line["answered_at"]))
    for found in fetches.values():
        found.sort(key=lambda fetch: fetch.receive_count)
    return dict(fetches)


def _acknowledged(draining: Draining) -> Counter[str]:
    """How often each receipt was said to be acknowledged."""
    return Counter(receipt for line in draining.lines("acknowledged") for receipt, ok in line["of"] if ok)
