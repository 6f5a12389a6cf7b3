"""Measuring: one backlog through the product, or so many posts of a bare loop, as the receiver sees them."""

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
# When nothing has come for so long, nothing will.
STALL_SECONDS = 60.0
# The last outcomes are committed just after their answers.
COMMIT_SECONDS = 10.0


class Measuring:
    """The receiver and what it got so far. `receipt` adds up over all rounds."""

    def __init__(self, sizes: BenchSizes, receiver: children.ReceiverProcess) -> None:
        self.sizes = sizes
        self.receiver = receiver
        self.receipt = BenchReceipt()
        self.peak_megabytes = 0.0

    def rounds(self, name: str, count: int) -> Iterator[int]:
        """Count rounds, and show that they go on."""
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
        """Let senders deliver a backlog, and return their rate; `peak_megabytes` is the memory of the first."""
        stage.clear()
        self.receiver.reset()
        cast.let_in(hanging=beside_hanging)
        if waiting is not None:
            waiting.fill()
        cast.publish(messages)
        # Held until all senders are there: how long they take to start is not in question.
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
        """Let a bare loop post, and return its rate."""
        self.receiver.reset()
        children.run_bare(loop, self.receiver.url, concurrency=concurrency, messages=messages)
        return rate_of(self.receiver.tally())

    def bare_round_trips(self, messages: int) -> list[float]:
        """Let one client post and commit in turn, and return the seconds of each round."""
        self.bare("commit", concurrency=1, messages=messages)
        moments = [at for _, at in self.receiver.arrivals()]
        return [later - earlier for earlier, later in pairwise(moments)]

    def receive(
        self, tally: dict[str, Any], *, expected: int, already: int = 0, is_ordered: bool = True
    ) -> None:
        """Add what came to the receipt; so many had been delivered already.

        Messages that several clients post at one moment have no order of their own.
        """
        # What came and is not recorded will come again: that is no better than lost.
        arrived = min(tally["got"], stage.delivered() - already)
        self.receipt += BenchReceipt(
            expected=expected,
            got=tally["got"],
            lost=expected - arrived,
            duplicated=tally["duplicated"],
            out_of_order=tally["out_of_order"] if is_ordered else 0,
        )


def wait_until(wanted: int, count: Callable[[], int], *, seconds: float) -> None:
    """Wait until so many are counted, or the count has not grown for so long."""
    counted, since = -1, time.monotonic()
    while counted < wanted and time.monotonic() - since < seconds:
        time.sleep(LOOK_EVERY_SECONDS)
        now = count()
        if now != counted:
            counted, since = now, time.monotonic()


def rate_of(tally: dict[str, Any]) -> float:
    """Requests a second, between the first and the last."""
    return (tally["requests"] - 1) / tally["seconds"] if tally["seconds"] else 0.0
