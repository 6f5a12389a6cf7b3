"""How much a benchmark does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Deliveries are counted a round: product and bare loops take turns, and medians are compared."""

    rounds: int = 5
    lanes: int = 100
    deliveries: int = 20_000
    posts: int = 30_000
    posts_from_threads: int = 3_000
    alone: int = 3_000
    many_lanes: int = 5_000
    hanging_lanes: int = 500
    many_deliveries: int = 54_000
    many_rounds: int = 3
    timeout_seconds: int = 5


QUICK = Sizes(
    rounds=1,
    lanes=10,
    deliveries=200,
    posts=200,
    posts_from_threads=160,
    alone=50,
    many_lanes=50,
    hanging_lanes=5,
    many_deliveries=180,
    many_rounds=1,
    timeout_seconds=1,
)
