"""The main process of the web server: granian, with two races of the stop mended.

A forked worker has the main process's handler of SIGTERM, without effect there, until it sets
another. When a stop came in the millisecond after a worker's start, the worker never noticed, and
granian killed it 8 s later. Therefore SIGTERM ends a new worker.

A thread of granian waits for each worker with waitpid(). Until the thread has stored the result,
waitpid() fails in the main thread, and multiprocessing reports the worker as alive. So granian
sometimes logged that an ended worker "refused to gracefully stop", and sent SIGKILL to the process
id. Therefore the main thread checks the worker's sentinel instead.
"""

import os
import signal
from functools import partial
from multiprocessing.connection import wait
from typing import Any

from config.up import titles


def run_granian() -> None:
    """Run granian with the arguments of this process."""
    from granian.cli import entrypoint

    titles.name_process("web")
    os.register_at_fork(after_in_child=partial(titles.name_process, "web worker"))
    make_new_workers_end()
    use_sentinels()
    entrypoint()  # type: ignore[no-untyped-call]


def make_new_workers_end() -> None:
    """Let SIGTERM end every process forked from now on, until it sets a handler."""
    os.register_at_fork(
        before=_block_signals, after_in_parent=_unblock_signals, after_in_child=_end_by_default
    )


def use_sentinels() -> None:
    """Let granian decide by a worker's sentinel whether the worker is alive."""
    from granian.server.mp import WorkerProcess

    WorkerProcess.is_alive = _is_alive  # type: ignore[method-assign]


def _is_alive(worker: Any) -> bool:
    return not wait([worker.inner.sentinel], timeout=0)


def _block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _end_by_default() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unblock_signals()


if __name__ == "__main__":
    run_granian()
