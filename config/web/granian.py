"""The main process of the web server: granian, whose new workers SIGTERM ends at once.

A forked worker has the main process's handler of SIGTERM, without effect there, until it sets its
own. When a stop came in the millisecond after a worker's start, that worker never noticed, and
granian killed it 8 s later.
"""

import os
import signal


def run_granian() -> None:
    """Run granian with the arguments of this process."""
    from granian.cli import entrypoint

    make_new_workers_end()
    entrypoint()  # type: ignore[no-untyped-call]


def make_new_workers_end() -> None:
    """Let SIGTERM end every process forked from now on, until it sets a handler of its own."""
    os.register_at_fork(
        before=_block_signals, after_in_parent=_unblock_signals, after_in_child=_end_by_default
    )


def _block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _end_by_default() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unblock_signals()


if __name__ == "__main__":
    run_granian()
