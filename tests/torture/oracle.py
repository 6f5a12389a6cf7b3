"""Compares the observations from outside with the promises of README, without the product's tables.

Every function is pure and returns findings; an empty list means that the promise held.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.support.receivers import Received
from tests.torture.hearing import is_taken, unheard_moments
from tests.torture.records import FaultWindow, Fetched, Published, Woken

# The difference between the clocks of two processes of this machine, and a thread's wait for its
# turn.
TOLERANCE_SECONDS = 0.2

# A sender that takes over a lane records doubt within this time.
NOTICED_SECONDS = 15.0

DEFINITE = ("DELIVERED", "REJECTED")


@dataclass(frozen=True, slots=True)
class Breach:
    rule: str
    lane: str
    at: float
    text: str


def lost(
    lane: str, owed: Sequence[Published], statuses: Mapping[str, str], received: Sequence[Received]
) -> list[Breach]:
    """Every owed message is settled, and the receiver accepted every DELIVERED one."""
    taken = {request.id for request in received if request.was_accepted}
    findings = []
    for message in owed:
        status = statuses.get(message.id)
        if status is None:
            findings.append(
                Breach("LOST", lane, message.answered_at, f"{message.id} has no delivery")
            )
        elif status == "PENDING":
            findings.append(
                Breach("STUCK", lane, message.answered_at, f"{message.id} is still PENDING")
            )
        elif status == "DELIVERED" and message.id not in taken:
            findings.append(
                Breach(
                    "LOST",
                    lane,
                    message.answered_at,
                    f"{message.id} is DELIVERED, and never arrived",
                )
            )
    return findings


def published_twice(lane: str, received: Iterable[Received]) -> list[Breach]:
    """One idempotency key is one message: the body has the key."""
    ids: dict[bytes, str] = {}
    findings = []
    for request in received:
        first = ids.setdefault(request.body, request.id)
        if first != request.id:
            findings.append(
                Breach(
                    "PUBLISHED TWICE",
                    lane,
                    request.at,
                    f"{first} and {request.id}: {request.body!r}",
                )
            )
    return findings


def order(lane: str, published: Iterable[Published], received: Iterable[Received]) -> list[Breach]:
    """If A was answered before B was sent, no first arrival of B comes before A's."""
    messages = {message.id: message for message in published}
    findings = []
    latest: Published | None = None
    seen = set()
    for request in received:
        message = messages.get(request.id)
        if message is None or message.id in seen:
            continue
        seen.add(message.id)
        if latest is not None and latest.sent_at > message.answered_at:
            findings.append(
                Breach(
                    "ORDER",
                    lane,
                    request.at,
                    f"{latest.id} arrived before the earlier {message.id}",
                )
            )
        if latest is None or message.sent_at > latest.sent_at:
            latest = message
    return findings


def repeats(
    lane: str, received: Iterable[Received], *, holds: bool, faults: Iterable[FaultWindow] = ()
) -> list[Breach]:
    """After a 2xx a message comes again only if marked; never if doubt is held.

    An answer that the sender cannot have received does not count: its connection was closed, or its
    time was over.
    """
    unheard = unheard_moments(faults)
    findings = []
    answered: dict[str, bool] = {}
    for request in received:
        in_doubt = request.redelivery == "in-doubt"
        if answered.get(request.id) and (holds or not in_doubt):
            findings.append(
                Breach(
                    "REPEATED", lane, request.at, f"{request.id} was answered 2xx and came again"
                )
            )
        if in_doubt and holds:
            findings.append(
                Breach("NOT HELD", lane, request.at, f"{request.id} was in doubt and sent again")
            )
        answered[request.id] = answered.get(request.id, False) or is_taken(request, unheard)
    return findings


def overtaken(lane: str, received: Sequence[Received], statuses: Mapping[str, str]) -> list[Breach]:
    """Under `strict` no message overtakes a failed one, unless that became IN_DOUBT meanwhile."""
    return [
        Breach(
            "OVERTAKEN",
            lane,
            later.at,
            f"{later.id} overtook {failed.id}, which was answered {failed.status}",
        )
        for failed, later in pairwise(received)
        if later.id != failed.id
        and not (failed.status is not None and 200 <= failed.status < 500)
        and statuses.get(failed.id) != "IN_DOUBT"
    ]


def numbered(lane: str, received: Iterable[Received]) -> list[Breach]:
    """The attempts of a delivery arrive with rising numbers."""
    last: dict[int, int] = {}
    findings = []
    for request in received:
        if request.attempt <= last.get(request.delivery, 0):
            text = f"{request.id}: attempt {request.attempt} after {last[request.delivery]}"
            findings.append(Breach("NUMBERED TWICE", lane, request.at, text))
        last[request.delivery] = request.attempt
    return findings


def sent_when_woken(
    lane: str, received: Iterable[Received], woken: Iterable[Woken]
) -> list[Breach]:
    """A sender that lost its session while stopped sends nothing before it is connected again."""
    return [
        Breach("SENT WHEN WOKEN", lane, request.at, f"{request.id}, attempt {request.attempt}")
        for request in received
        for sender in woken
        if request.port in sender.ports and sender.since <= request.at < sender.until
    ]


def doubts(
    lane: str,
    doubted_at: Iterable[float],
    crashes: Sequence[tuple[float, float]],
    *,
    at_most: int = 1,
    wrong_by: float = 0.0,
) -> list[Breach]:
    """Each crash leaves at most `at_most` deliveries in doubt, recorded soon after its fault's end.

    `crashes` are moments with that end. The recording clock may be wrong by `wrong_by` seconds.
    """
    left = [crash for crash in sorted(crashes) for _ in range(at_most)]
    late, early = NOTICED_SECONDS + wrong_by, TOLERANCE_SECONDS + wrong_by
    findings = []
    for at in sorted(doubted_at):
        cause = next(
            (downtime for downtime in left if downtime[0] - early <= at <= downtime[1] + late), None
        )
        if cause is None:
            text = "no crash explains it, or more than one is in doubt"
            findings.append(Breach("IN DOUBT", lane, at, text))
        else:
            left.remove(cause)
    return findings


def group(
    lane: str,
    owed: Iterable[Published],
    statuses: Mapping[str, Sequence[str]],
    received: Iterable[Received],
    *,
    most_in_doubt: int,
    faults: Iterable[FaultWindow] = (),
) -> list[Breach]:
    """In a QUEUE group one endpoint took each message; only a message in doubt may come twice.

    An answer that the sender cannot have received does not count, as in `repeats`.
    """
    findings = []
    unheard = unheard_moments(faults)
    takers: dict[str, list[Received]] = defaultdict(list)
    for request in received:
        if is_taken(request, unheard):
            takers[request.id].append(request)
    for message in owed:
        counted = Counter(statuses.get(message.id, ()))
        if counted["DELIVERED"] != 1 or counted["PENDING"]:
            findings.append(
                Breach("GROUP", lane, message.answered_at, f"{message.id} is {dict(counted)}")
            )
    doubled = [taken for taken in takers.values() if len(taken) > 1]
    unmarked = [
        taken[1]
        for taken in doubled
        if all(request.redelivery != "in-doubt" for request in taken[1:])
    ]
    findings += [
        Breach("GROUP", lane, request.at, f"{request.id} was taken twice, unmarked")
        for request in unmarked
    ]
    if len(doubled) > most_in_doubt:
        findings.append(
            Breach(
                "GROUP", lane, 0.0, f"{len(doubled)} taken twice, at most {most_in_doubt} may be"
            )
        )
    return findings


def mailbox(
    lane: str, owed: Iterable[Published], fetched: Iterable[Fetched], *, steps: Sequence[float] = ()
) -> list[Breach]:
    """No client gets a leased or an acknowledged message; every message is fetched.

    When the clock `steps`, a lease may expire sooner than it should.
    """
    by_id: dict[str, list[Fetched]] = defaultdict(list)
    for fetch in fetched:
        by_id[fetch.id].append(fetch)
    findings = [
        Breach("LOST", lane, message.answered_at, f"{message.id} was never fetched")
        for message in owed
        if message.id not in by_id
    ]
    for id, fetches in by_id.items():
        for first, second in pairwise(sorted(fetches, key=lambda fetch: fetch.answered_at)):
            is_stepped = any(first.asked_at <= step <= second.answered_at for step in steps)
            if second.answered_at < _held_until(first) - TOLERANCE_SECONDS and not is_stepped:
                findings.append(
                    Breach(
                        "HELD",
                        lane,
                        second.answered_at,
                        f"{id} was handed out while another held it",
                    )
                )
            if first.acknowledged_at is not None and second.asked_at > first.acknowledged_at:
                findings.append(
                    Breach(
                        "HELD",
                        lane,
                        second.answered_at,
                        f"{id} came back after its acknowledgement",
                    )
                )
    return findings


def _held_until(fetch: Fetched) -> float:
    return fetch.asked_at + fetch.visibility if fetch.released_at is None else fetch.released_at


def unexpected(lane: str, statuses: Mapping[str, str], allowed: Iterable[str]) -> list[Breach]:
    """Every delivery ends in a status that this lane may have."""
    wrong = {id: status for id, status in statuses.items() if status not in {*allowed, *DEFINITE}}
    return [
        Breach("STATUS", lane, 0.0, f"{id} is {status}") for id, status in list(wrong.items())[:10]
    ]
