"""The pipeline's loop, as a task of its cluster."""

from delivery.keep import Keeper
from delivery.pipeline import loop


def run_pipeline() -> None:
    KEEPER.work()


KEEPER = Keeper("delivery.pipeline.keep.run_pipeline", loop.run)
