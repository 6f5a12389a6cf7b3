"""`bench publish`: the rate at which messages are accepted over HTTP.

It is compared with bare transactions storing as much.
"""

from dataclasses import dataclass

from django.db import connection

from delivery.models import Delivery, Message
from tests.bench import stage
from tests.bench.children import measured, run_publishers
from tests.bench.measuring import Measuring
from tests.bench.publishers import PublishLoad
from tests.bench.results import BenchReceipt, BenchResult, compare
from tests.bench.web import web

BARE_CONNECTIONS = 16
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLoad:
    """So many connections; each request publishes `batch` messages to `subscriptions`."""

    subscriptions: int
    connections: int
    wanted: float
    batch: int = 1

    @property
    def name(self) -> str:
        what = "single posts" if self.batch == 1 else f"batches of {self.batch}"
        return f"{what}, {self.connections} connections, {self.subscriptions} deliveries each"


SINGLE = (
    PublishedLoad(subscriptions=10, connections=16, wanted=0.5),
    PublishedLoad(subscriptions=10, connections=64, wanted=0.9),
    PublishedLoad(subscriptions=100, connections=64, wanted=0.9),
)
BATCHES = (PublishedLoad(subscriptions=10, connections=16, batch=BATCH, wanted=0.5),)


def single_posts(measuring: Measuring) -> list[BenchResult]:
    return [_compared(measuring, load) for load in SINGLE]


def batches(measuring: Measuring) -> list[BenchResult]:
    return [_compared(measuring, load) for load in BATCHES]


def _compared(measuring: Measuring, load: PublishedLoad) -> BenchResult:
    """Publish through the product and store by bare transactions, the same rows, in turns."""
    # There are no senders: the endpoints get no requests.
    cast = stage.make_cast(
        f"publish{load.subscriptions}x{load.connections}x{load.batch}",
        url="http://127.0.0.1:9",
        lanes=load.subscriptions,
    )
    cast.let_in(hanging=False)
    key = cast.make_key()
    deliveries = measuring.sizes.published_deliveries
    messages = max(deliveries // load.subscriptions // load.batch, load.connections) * load.batch
    product, bare = [], []
    with web() as port:
        posted = PublishLoad(
            port=port,
            event_type=cast.event_type.name,
            key=key,
            connections=load.connections,
            messages=messages,
            batch=load.batch,
        )
        for _ in measuring.rounds(load.name, measuring.sizes.rounds):
            stage.clear()
            _settle_down()
            product.append(run_publishers(posted).rate)
            measuring.receipt += _receipt(messages, subscriptions=load.subscriptions)
            bare.append(_stored_bare(messages, load))
    return compare(f"{load.name}, of bare transactions", product, bare, wanted=load.wanted)


def _stored_bare(messages: int, load: PublishedLoad) -> float:
    numbers = (messages, BARE_CONNECTIONS, load.subscriptions, load.batch)
    return measured("-m", "tests.bench.bare_publish", *map(str, numbers)).rate


def _receipt(messages: int, *, subscriptions: int) -> BenchReceipt:
    """Return the receipt of stored messages with their deliveries: there is no receiver."""
    stored, owed = Message.objects.count(), Delivery.objects.count()
    whole = min(stored, owed // subscriptions)
    return BenchReceipt(
        expected=messages,
        got=whole,
        lost=max(messages - whole, 0),
        duplicated=max(stored - messages, 0),
    )


def _settle_down() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE delivery_message, delivery_delivery")
        cursor.execute("CHECKPOINT")


SCENARIOS = {"single": single_posts, "batches": batches}
