"""`bench publish`, scenario `filters`: how long matching takes with a thousand filters.

A web server remembers the subscriptions of an event type, and evaluates each filter for each
message. It reads them again after a change: it must not take longer with more subscriptions of
other event types.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from subscriptions.filters import document
from subscriptions.matching.candidates import Candidate
from subscriptions.matching.index import CandidateIndex
from subscriptions.matching.match import candidates, qualifying_candidates
from subscriptions.models import EventType, Subscription, SubscriptionStatus
from tests.bench import stage
from tests.bench.measuring import Measuring
from tests.bench.message import BODY
from tests.bench.results import BenchResult, at_most

MOST_MILLISECONDS = 1.0
MOST_GROWTH = 1.2
OTHERS = 9
# A third looks at a header, a third at two fields of the body, a third at a beginning.
FILTERS = (
    "$$->'Header'->>'project' = 'p{number}'",
    "$$->'Body'->>'project' = 'p{number}' AND $$->'Body'->>'stage' = 'done'",
    "$$->'Body'->>'project' LIKE 'p{number}-%'",
)
MESSAGE_HEADERS = {"project": "p7"}
MESSAGE_BODY = BODY.replace(b"{", b'{"project": "p8", "stage": "done", ', 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingTimes:
    """Milliseconds: the evaluation of all filters for a message, and reading them."""

    message: float
    reading: float


def thousand_filters(measuring: Measuring) -> list[BenchResult]:
    sizes = measuring.sizes
    stage.clear()
    event_type = _filtered("filtered", measuring.receiver.url, sizes.filters)
    alone = _measured(event_type, sizes.filter_rounds)
    for number in range(OTHERS):
        _filtered(f"filtered-{number}", measuring.receiver.url, sizes.filters)
    among = _measured(event_type, sizes.filter_rounds)
    name = f"matching a message with {sizes.filters:,} filters"
    return [
        at_most(name, alone.message, MOST_MILLISECONDS, unit="ms"),
        at_most(f"{name}, {OTHERS} × more elsewhere", among.message, MOST_MILLISECONDS, unit="ms"),
        at_most("reading them after a change", alone.reading, None, unit="ms"),
        at_most(
            f"reading them, {OTHERS} × more elsewhere",
            among.reading,
            MOST_GROWTH * alone.reading,
            unit="ms",
        ),
    ]


def _filtered(name: str, url: str, filters: int) -> EventType:
    event_type = stage.make_cast(name, url=url, lanes=filters).event_type
    rows = list(event_type.subscriptions.order_by("id"))
    for number, row in enumerate(rows):
        row.filter = FILTERS[number % len(FILTERS)].format(number=number)
        row.filter_identity = str(number)
        row.status = SubscriptionStatus.ACTIVE
    Subscription.objects.bulk_update(rows, ["filter", "filter_identity", "status"], batch_size=500)
    stage.analyze()
    return event_type


def _measured(event_type: EventType, rounds: int) -> MatchingTimes:
    index = read_index(event_type)
    # Reading the message is part of it; compiling the filters is not: it is done once.
    times = _milliseconds(lambda: matching(index), rounds)
    readings = _milliseconds(lambda: [read_index(event_type)], rounds)
    return MatchingTimes(message=median(times), reading=median(readings))


def read_index(event_type: EventType) -> CandidateIndex:
    """Read the subscriptions as a web server does after a change."""
    return CandidateIndex(candidates(event_type, [MESSAGE_HEADERS]))


def matching(index: CandidateIndex) -> list[Candidate]:
    """Match the message as a web server does."""
    content = document(MESSAGE_HEADERS, MESSAGE_BODY)
    return qualifying_candidates(index.possible(content), content)


def _milliseconds(act: Callable[[], Sequence[object]], rounds: int) -> list[float]:
    act()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        times.append(1000 * (time.perf_counter() - began))
    return times


SCENARIOS = {"filters": thousand_filters}
