"""`bench deliver`, scenario `retries`: a full retry lane costs fresh deliveries little."""

from tests.bench.measuring import Measuring
from tests.bench.results import BenchResult, compare
from tests.bench.stage import make_cast, make_waiting


def fresh_beside_waiting(measuring: Measuring) -> list[BenchResult]:
    """Deliver fresh messages over 100 lanes, with and without a full retry lane."""
    sizes = measuring.sizes
    cast = make_cast("fresh", url=measuring.receiver.url, lanes=sizes.lanes)
    waiting = make_waiting("waiting", url=measuring.receiver.url, count=sizes.waiting_retries)
    messages = sizes.deliveries // sizes.lanes
    without, beside = [], []
    for _ in measuring.rounds("retries", sizes.rounds):
        without.append(measuring.product(cast, messages, senders=sizes.senders))
        beside.append(measuring.product(cast, messages, senders=sizes.senders, waiting=waiting))
    name = f"{sizes.waiting_retries:,} in the retry lane, of the fresh flow without them"
    return [compare(name, beside, without, wanted=0.9)]


SCENARIOS = {"retries": fresh_beside_waiting}
