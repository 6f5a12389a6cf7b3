"""The measurement of a backlog in the product, or of a bare loop's posts, at the receiver."""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from tqdm import tqdm

from tests.bench import children, stage
from tests.bench.results import BenchReceipt
from tests.bench.sizes import BenchSizes

LOOK_EVERY_SECONDS = 0.1
START_SECONDS = 60.0
# If no request has come for so long, none will.
STALL_SECONDS = 60.0
# The last outcomes are committed just after their answers.
COMMIT_SECONDS = 10.0


class Measuring:
    """The receiver and the requests so far. `receipt` accumulates over all rounds."""

    def __init__(self, sizes: BenchSizes, receiver: children.ReceiverProcess) -> None:
        self.sizes = sizes
        self.receiver = receiver
        self.receipt = BenchReceipt()
        self.peak_megabytes = 0.0

    def rounds(self, name: str, count: int) -> Iterator[int]:
        """Count rounds, with a progress bar."""
        yield from tqdm(range(count), desc=name, unit="round", file=sys.stderr, disable=None)

    def product(
        self,
        cast: stage.BenchSetup,
        messages: int,
        *,
        senders: int = 1,
        beside_hanging: bool = False,
        waiting: stage.WaitingDeliveries | None = None,
    ) -> float:
        """Deliver a backlog with senders, and return their rate.

        `peak_megabytes` is the memory of the first sender.
        """
        stage.clear()
        self.receiver.reset()
        cast.let_in(hanging=beside_hanging)
        if waiting is not None:
            waiting.fill()
        cast.publish(messages)
        # Held until all senders have started: their start-up time is not measured.
        cast.hold()
        expected = messages * cast.lanes
        with children.senders(senders) as processes:
            wait_until(senders, stage.senders, seconds=START_SECONDS)
            cast.let_in(hanging=beside_hanging)
            wait_until(expected, self.receiver.count, seconds=STALL_SECONDS)
            wait_until(expected, stage.delivered, seconds=COMMIT_SECONDS)
            self.peak_megabytes = children.peak_megabytes(processes[0])
        tally = self.receiver.tally()
        self.receive(tally, expected=expected)
        return rate_of(tally)

    def bare(self, loop: str, *, concurrency: int, messages: int) -> float:
        """Run a bare loop, and return the rate."""
        self.receiver.reset()
        children.run_bare(loop, self.receiver.url, concurrency=concurrency, messages=messages)
        return rate_of(self.receiver.tally())

    def bare_round_trips(self, messages: int) -> list[float]:
        """Post and commit in turn with a single client, and return the seconds of each round."""
        self.bare("commit", concurrency=1, messages=messages)
        moments = [at for _, at in self.receiver.arrivals()]
        return [later - earlier for earlier, later in pairwise(moments)]

    def receive(
        self,
        tally: dict[str, Any],
        *,
        expected: int,
        already: int = 0,
        is_ordered: bool = True,
        marked: int = 0,
    ) -> None:
        """Add the tally to the receipt; `already` deliveries were delivered before.

        Messages posted by several clients at the same moment have no order. Repetitions of `marked`
        deliveries are no fault: a crash left them in doubt.
        """
        # A delivery arrived and not recorded will come again: no better than lost.
        arrived = min(tally["got"], stage.delivered() - already)
        self.receipt += BenchReceipt(
            expected=expected,
            got=tally["got"],
            lost=expected - arrived,
            duplicated=max(tally["duplicated"] - marked, 0),
            out_of_order=tally["out_of_order"] if is_ordered else 0,
        )


def wait_until(wanted: int, count: Callable[[], int], *, seconds: float) -> None:
    """Wait until so many are counted, or the count has not grown for so many seconds."""
    counted, since = -1, time.monotonic()
    while counted < wanted and time.monotonic() - since < seconds:
        time.sleep(LOOK_EVERY_SECONDS)
        now = count()
        if now != counted:
            counted, since = now, time.monotonic()


def rate_of(tally: dict[str, Any]) -> float:
    """Return the requests per second, between the first and the last."""
    return (tally["requests"] - 1) / tally["seconds"] if tally["seconds"] else 0.0
