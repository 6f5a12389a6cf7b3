"""One sender process: the stint that a worker of the senders' cluster runs, until SIGTERM.

`python -m delivery.bench.sender SLOTS`, with as many slots as there are such processes.
"""

import asyncio
import signal
import sys

import django
import uvloop

# Longer than any benchmark: its end is the signal.
SECONDS = 86_400


def run(slots: int) -> None:
    from delivery.senders.stint import Stint

    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    stint = Stint(queue="bench", slots=slots, seconds=SECONDS, must_stop=lambda: bool(asked))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(stint.run())


if __name__ == "__main__":
    django.setup()
    run(int(sys.argv[1]))
