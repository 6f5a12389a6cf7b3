"""`bench mailbox`: the rate at which clients drain a mailbox over HTTP, and the cost of depth.

The rate is compared with the database's alone.
"""

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

# Sufficient messages per second with PostgreSQL on two cores, whatever the database alone achieves.
ENOUGH = 3_000
DEPTH_COSTS_AT_MOST = 1.2
SHALLOW = "inturn_shallow"


def emptied_by_clients(measuring: Measuring) -> list[BenchResult]:
    """Fetch and acknowledge all messages with a few clients, in batches."""
    sizes = measuring.sizes
    mailbox = make_mailbox("drain")
    product, bare = [], []
    with web() as port:
        for _ in measuring.rounds("drain", sizes.rounds):
            stage.clear()
            mailbox.fill(sizes.mailbox_messages)
            mailbox.vacuum_and_checkpoint()
            product.append(_rate(measuring, mailbox, port, messages=sizes.mailbox_messages))
            fill_bare(sizes.mailbox_messages)
            bare.append(
                drain_bare(connections=sizes.mailbox_clients, batch=sizes.mailbox_batch).rate
            )
    name = (
        f"{sizes.mailbox_clients} clients, batches of {sizes.mailbox_batch}, "
        "of SKIP LOCKED and DELETE"
    )
    return [compare(name, product, bare, wanted=0.25, enough=ENOUGH)]


def deep_and_shallow(measuring: Measuring) -> list[BenchResult]:
    """Compare a deep mailbox with a shallow mailbox.

    Each has a separate database: otherwise the tables would be deep for both.
    """
    sizes = measuring.sizes
    stage.clear()
    deep = make_mailbox("depth")
    with copied_database(SHALLOW):
        shallow = replace(deep, database=SHALLOW)
        for mailbox, depth in ((deep, sizes.depth), (shallow, sizes.shallow_depth)):
            mailbox.fill(depth)
            mailbox.vacuum_and_checkpoint()
        with web() as port, web({"DATABASE_URL": url_of_database(SHALLOW)}) as shallow_port:
            costs, limits = _costs(measuring, [(deep, port), (shallow, shallow_port)])
    name = f"a message at depth {sizes.depth:,}, of one at {sizes.shallow_depth:,}"
    return [compare_costs(name, costs, limits, at_most=DEPTH_COSTS_AT_MOST)]


def _costs(measuring: Measuring, mailboxes: Sequence[tuple[Mailbox, int]]) -> list[list[float]]:
    """Return the cost per message of each mailbox in each round; the mailboxes keep their depth."""
    messages = measuring.sizes.depth_messages
    costs: list[list[float]] = [[] for _ in mailboxes]
    turns = list(zip(mailboxes, costs, strict=True))
    for _ in measuring.rounds("depth", measuring.sizes.depth_rounds):
        for (mailbox, port), found in turns:
            found.append(1e6 / _rate(measuring, mailbox, port, messages=messages))
            mailbox.fill(messages)
        # The machine's state differs between the first and the second measurement.
        turns.reverse()
    return costs


def _rate(measuring: Measuring, mailbox: Mailbox, port: int, *, messages: int) -> float:
    """Fetch and acknowledge so many messages with the clients, and return their rate."""
    sizes = measuring.sizes
    delivered = mailbox.delivered()
    drained = mailbox.drain(
        port, clients=sizes.mailbox_clients, batch=sizes.mailbox_batch, messages=messages
    )
    # A message acknowledged and not recorded will come again: no better than lost.
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
