"""The senders, as tasks of their cluster."""

# Imported here, before the workers are forked: a worker that replaces a killed one must not
# spend its first second on importing.
from delivery.keep import Keeper
from delivery.senders import sender


def run_sender() -> None:
    KEEPER.work()


KEEPER = Keeper("delivery.senders.keep.run_sender", sender.run)
