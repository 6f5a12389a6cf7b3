"""`bench deliver`: the delivery rate of the senders, compared with the machine's limit.

Product and bare loops take turns, and each round is compared within itself: other load on the
machine slows both. A rate counts requests at the receiver, between the first arrival and the last,
and each arrival is compared with the DELIVERED rows.
"""

from tests.bench.measuring import Measuring
from tests.bench.results import BenchResult, compare
from tests.bench.stage import make_cast

THREADS = 16
MAX_MEGABYTES = 400


def lanes_at_once(measuring: Measuring) -> list[BenchResult]:
    """Deliver to 100 subscribers, with an outcome on disk before the lane's next send."""
    sizes = measuring.sizes
    cast = make_cast("lanes", url=measuring.receiver.url, lanes=sizes.lanes)
    product, coroutines, threads = [], [], []
    for _ in measuring.rounds("lanes", sizes.rounds):
        product.append(
            measuring.product(cast, sizes.deliveries // sizes.lanes, senders=sizes.senders)
        )
        coroutines.append(measuring.bare("aiohttp", concurrency=sizes.lanes, messages=sizes.posts))
        threads.append(
            measuring.bare("requests", concurrency=THREADS, messages=sizes.posts_from_threads)
        )
    name = f"{sizes.lanes} lanes, {sizes.senders} senders"
    return [
        compare(f"{name}, of a bare aiohttp loop", product, coroutines, wanted=0.65),
        compare(f"{name}, of requests in {THREADS} threads", product, threads, wanted=4),
    ]


def few_lanes(measuring: Measuring) -> list[BenchResult]:
    """Deliver to 10 subscribers: a commit has the outcomes of ten lanes at most."""
    sizes = measuring.sizes
    cast = make_cast("few", url=measuring.receiver.url, lanes=sizes.few_lanes)
    product, bare = [], []
    for _ in measuring.rounds("few", sizes.rounds):
        product.append(
            measuring.product(cast, sizes.few_deliveries // sizes.few_lanes, senders=sizes.senders)
        )
        bare.append(measuring.bare("aiohttp", concurrency=sizes.few_lanes, messages=sizes.posts))
    name = f"{sizes.few_lanes} lanes, {sizes.senders} senders, of a bare aiohttp loop"
    return [compare(name, product, bare, wanted=0.45)]


def one_lane_alone(measuring: Measuring) -> list[BenchResult]:
    """Deliver to a subscriber: any way needs a round trip and a commit per message."""
    sizes = measuring.sizes
    cast = make_cast("alone", url=measuring.receiver.url, lanes=1)
    product, bare = [], []
    for _ in measuring.rounds("alone", sizes.alone_rounds):
        product.append(measuring.product(cast, sizes.alone))
        bare.append(measuring.bare("commit", concurrency=1, messages=sizes.alone))
    return [compare("one lane alone, of POST and commit in turn", product, bare, wanted=0.8)]


def lanes_beside_hanging_ones(measuring: Measuring) -> list[BenchResult]:
    """Deliver over thousands of lanes, some of whose endpoints always time out."""
    sizes = measuring.sizes
    cast = make_cast(
        "many",
        url=measuring.receiver.url,
        lanes=sizes.many_lanes - sizes.hanging_lanes,
        hanging=sizes.hanging_lanes,
        timeout_seconds=sizes.timeout_seconds,
    )
    messages = sizes.many_deliveries // cast.lanes
    without, beside, megabytes = [], [], []
    for _ in measuring.rounds("many", sizes.many_rounds):
        without.append(measuring.product(cast, messages))
        beside.append(measuring.product(cast, messages, beside_hanging=True))
        megabytes.append(measuring.peak_megabytes)
    name = f"{sizes.many_lanes:,} lanes"
    return [
        compare(f"{name}, {cast.hanging} hanging, of without them", beside, without, wanted=0.8),
        BenchResult(
            name=f"{name}, memory of the sender",
            value=max(megabytes),
            unit="MB",
            limit=MAX_MEGABYTES,
            ratio=max(megabytes) / MAX_MEGABYTES,
            wanted=1,
            is_at_most=True,
        ),
    ]


SCENARIOS = {
    "lanes": lanes_at_once,
    "few": few_lanes,
    "alone": one_lane_alone,
    "many": lanes_beside_hanging_ones,
}
