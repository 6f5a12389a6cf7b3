"""`bench queue`: the delivery rate of queue senders, compared with the machine's limit."""

from tests.bench.measuring import Measuring
from tests.bench.results import BenchResult, compare
from tests.bench.stage import make_queue_cast


def one_group(measuring: Measuring) -> list[BenchResult]:
    """Deliver each message to one endpoint of a group, with an outcome on disk for each."""
    sizes = measuring.sizes
    cast = make_queue_cast("group", url=measuring.receiver.url, endpoints=sizes.endpoints)
    product, bare = [], []
    for _ in measuring.rounds("group", sizes.rounds):
        product.append(measuring.product(cast, sizes.queue_messages, senders=sizes.senders))
        bare.append(measuring.bare("aiohttp", concurrency=sizes.lanes, messages=sizes.posts))
    name = (
        f"{sizes.endpoints} endpoints in a group, {sizes.senders} senders, of a bare aiohttp loop"
    )
    return [compare(name, product, bare, wanted=0.3)]


SCENARIOS = {"group": one_group}
