"""The stints of the pipeline's loop, as tasks of their cluster."""

from delivery.keep import Keeper
from delivery.pipeline import loop


def run_stint() -> None:
    KEEPER.work()


KEEPER = Keeper("delivery.pipeline.keep.run_stint", loop.run)
