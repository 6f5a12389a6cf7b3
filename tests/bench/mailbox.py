"""`bench mailbox`: how fast clients empty a mailbox over HTTP, beside what the database alone can do; and what depth costs."""

from collections.abc import Sequence
from dataclasses import replace

from tests.bench import stage
from tests.bench.mailbox_stage import (
    Mailbox,
    copied_database,
    drain_bare,
    fill_bare,
    make_mailbox,
    url_of_database,
)
from tests.bench.measuring import Measuring
from tests.bench.results import BenchReceipt, BenchResult, compare, compare_costs
from tests.bench.web import web

# Messages a second that are enough beside PostgreSQL on two cores, whatever it can do alone.
ENOUGH = 3_000
DEPTH_COSTS_AT_MOST = 1.2
SHALLOW = "inturn_shallow"


def emptied_by_clients(measuring: Measuring) -> list[BenchResult]:
    """A few clients fetch and acknowledge all there is, in batches."""
    sizes = measuring.sizes
    mailbox = make_mailbox("drain")
    product, bare = [], []
    with web() as port:
        for _ in measuring.rounds("drain", sizes.rounds):
            stage.clear()
            mailbox.fill(sizes.mailbox_messages)
            mailbox.settle_down()
            product.append(_rate(measuring, mailbox, port, messages=sizes.mailbox_messages))
            fill_bare(sizes.mailbox_messages)
            bare.append(drain_bare(connections=sizes.mailbox_clients, batch=sizes.mailbox_batch).rate)
    name = f"{sizes.mailbox_clients} clients, batches of {sizes.mailbox_batch}, of SKIP LOCKED and DELETE"
    return [compare(name, product, bare, wanted=0.25, enough=ENOUGH)]


def deep_and_shallow(measuring: Measuring) -> list[BenchResult]:
    """The same of a deep mailbox and of a shallow one. Each has a database of its own, so that no table is deep for both."""
    sizes = measuring.sizes
    stage.clear()
    deep = make_mailbox("depth")
    with copied_database(SHALLOW):
        shallow = replace(deep, database=SHALLOW)
        for mailbox, depth in ((deep, sizes.depth), (shallow, sizes.shallow_depth)):
            mailbox.fill(depth)
            mailbox.settle_down()
        with web() as port, web({"DATABASE_URL": url_of_database(SHALLOW)}) as shallow_port:
            costs, limits = _costs(measuring, [(deep, port), (shallow, shallow_port)])
    name = f"a message at depth {sizes.depth:,}, of one at {sizes.shallow_depth:,}"
    return [compare_costs(name, costs, limits, at_most=DEPTH_COSTS_AT_MOST)]


def _costs(measuring: Measuring, mailboxes: Sequence[tuple[Mailbox, int]]) -> list[list[float]]:
    """Return what a message of each mailbox cost in each round; they stay as deep as they are."""
    messages = measuring.sizes.depth_messages
    costs: list[list[float]] = [[] for _ in mailboxes]
    turns = list(zip(mailboxes, costs, strict=True))
    for _ in measuring.rounds("depth", measuring.sizes.depth_rounds):
        for (mailbox, port), found in turns:
            found.append(1e6 / _rate(measuring, mailbox, port, messages=messages))
            mailbox.fill(messages)
        # What comes second finds another machine than what comes first.
        turns.reverse()
    return costs


def _rate(measuring: Measuring, mailbox: Mailbox, port: int, *, messages: int) -> float:
    """Let the clients fetch and acknowledge so many, and return their rate."""
    sizes = measuring.sizes
    delivered = mailbox.delivered()
    drained = mailbox.drain(port, clients=sizes.mailbox_clients, batch=sizes.mailbox_batch, messages=messages)
    # What was acknowledged and is not recorded will come again: that is no better than lost.
    arrived = min(drained.got, drained.acknowledged, mailbox.delivered() - delivered)
    measuring.receipt += BenchReceipt(
        expected=messages,
        got=drained.got,
        lost=messages - arrived,
        duplicated=drained.duplicated,
        out_of_order=drained.out_of_order,
    )
    return drained.rate


SCENARIOS = {"drain": emptied_by_clients, "depth": deep_and_shallow}
