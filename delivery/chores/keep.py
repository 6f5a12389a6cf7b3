"""The stints of chores, as tasks of their cluster."""

from delivery.chores import loop
from delivery.keep import Keeper


def run_stint() -> None:
    KEEPER.work()


KEEPER = Keeper("delivery.chores.keep.run_stint", loop.run)
