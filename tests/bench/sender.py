"""A sender process until SIGTERM, as in the cluster: `python -m tests.bench.sender`."""

import asyncio
import signal

import django
import uvloop


def run() -> None:
    from delivery.senders.sender import Sender

    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: asked.append(number))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Sender(must_stop=lambda: bool(asked)).run())


if __name__ == "__main__":
    django.setup()
    run()
