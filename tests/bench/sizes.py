"""The sizes of a benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSizes:
    """Delivery counts are per round: product and bare loops take turns.

    `senders` is the number of processes for 100 lanes: an installation's default
    (SENDER_PROCESSES). A single process serves a single lane, and also thousands of them.
    """

    rounds: int = 5
    senders: int = 2
    lanes: int = 100
    deliveries: int = 30_000
    few_lanes: int = 10
    few_deliveries: int = 10_000
    posts: int = 30_000
    posts_from_threads: int = 3_000
    # With short turns, other load on the machine is less likely to slow a single side.
    alone_rounds: int = 9
    alone: int = 3_000
    many_lanes: int = 5_000
    hanging_lanes: int = 500
    many_deliveries: int = 54_000
    many_rounds: int = 3
    timeout_seconds: int = 5
    endpoints: int = 3
    queue_messages: int = 20_000
    waiting_retries: int = 100_000
    script_rounds: int = 3
    scripted_lanes: int = 20
    scripted: int = 6_000
    unscripted: int = 3_000
    published_deliveries: int = 60_000
    latency_seconds: float = 20
    idle_seconds: float = 10
    cost_seconds: float = 20
    together_seconds: float = 20
    together_backlog: int = 40_000
    filters: int = 1_000
    filter_rounds: int = 200
    endurance_seconds: float = 1_800
    scale_backlog: int = 20_000
    stored: tuple[int, ...] = (10_000, 1_000_000, 10_000_000)
    growth_rounds: int = 3
    # Subscribers, subscriptions, and filters of an event type.
    configured: tuple[tuple[int, int, int], ...] = ((100, 1_000, 200), (10_000, 100_000, 20_000))
    page_rounds: int = 20
    # A folder for plots; none if empty.
    plot: str = ""
    machines: tuple[int, ...] = (1, 2, 4)
    machine_lanes: int = 100
    machine_backlog: int = 60_000
    machine_rate: float = 10
    machine_seconds: float = 10
    machine_settle_seconds: float = 3
    machine_rounds: int = 3
    bare_round_trips: int = 1_000
    mailbox_clients: int = 8
    mailbox_batch: int = 10
    mailbox_messages: int = 20_000
    depth: int = 1_000_000
    shallow_depth: int = 10_000
    depth_rounds: int = 9
    depth_messages: int = 4_000
    history_rounds: int = 3
    # The backlog lasts longer than an export alongside it.
    beside_rounds: int = 2
    beside_messages: int = 1_500
    beside_seconds: float = 8


QUICK = BenchSizes(
    rounds=1,
    lanes=10,
    deliveries=200,
    few_lanes=3,
    few_deliveries=60,
    posts=200,
    posts_from_threads=160,
    alone_rounds=1,
    alone=50,
    many_lanes=50,
    hanging_lanes=5,
    many_deliveries=180,
    many_rounds=1,
    timeout_seconds=1,
    queue_messages=100,
    waiting_retries=100,
    script_rounds=1,
    scripted_lanes=4,
    scripted=200,
    unscripted=200,
    published_deliveries=500,
    latency_seconds=0.5,
    idle_seconds=0.5,
    cost_seconds=1,
    together_seconds=1,
    together_backlog=1_000,
    filters=30,
    filter_rounds=5,
    endurance_seconds=3,
    scale_backlog=300,
    stored=(1_000, 2_000),
    growth_rounds=1,
    configured=((20, 100, 30),),
    page_rounds=2,
    machines=(1, 2),
    machine_lanes=10,
    machine_backlog=300,
    machine_rate=20,
    machine_seconds=1,
    machine_settle_seconds=0,
    machine_rounds=1,
    bare_round_trips=20,
    mailbox_messages=300,
    depth=2_000,
    shallow_depth=200,
    depth_rounds=2,
    depth_messages=100,
    history_rounds=1,
    beside_rounds=1,
    beside_messages=2_000,
    beside_seconds=0.5,
)
