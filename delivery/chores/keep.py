"""The loop of chores, as a task of its cluster."""

from delivery.chores import loop
from delivery.keep import Keeper


def run_chores() -> None:
    KEEPER.work()


KEEPER = Keeper("delivery.chores.keep.run_chores", loop.run)
