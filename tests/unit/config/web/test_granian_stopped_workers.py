"""Web workers at a stop: a new one ends by SIGTERM, and an ended one is not reported as alive."""

import subprocess
import sys

from config.env import CHECKOUT

# Handles SIGTERM as granian's main process does, and ends each forked process at once by it.
FORKS = """
import os, signal, time
from config.web.granian import make_new_workers_end

got = []
signal.signal(signal.SIGTERM, lambda *_: got.append(1))
make_new_workers_end()
ended = 0
for _ in range(50):
    pid = os.fork()
    if pid == 0:
        for _ in range(5):
            time.sleep(0.01)
        os._exit(0)
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    ended += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM
os.kill(os.getpid(), signal.SIGTERM)
print(ended, len(got))
"""

# Takes an ended worker's exit status, as granian's other thread does before it stores the status.
ENDS = """
import os
from granian.server.mp import WorkerProcess
from config.web.granian import use_sentinels

use_sentinels()
alive = os.pipe()
worker = WorkerProcess(parent=None, idx=0, target=os.read, args=(alive[0], 1))
worker.inner.start()
answers = [worker.is_alive()]
os.write(alive[1], b".")
os.waitpid(worker.inner.pid, 0)
worker.join(8)
answers.append(worker.is_alive())
print(*answers)
"""


def test_sigterm_ends_each_new_worker_and_the_main_process_still_handles_its_own() -> None:
    assert run(FORKS) == ["50", "1"]


def test_an_ended_worker_counts_as_ended_before_its_status_is_stored() -> None:
    assert run(ENDS) == ["True", "False"]


def run(script: str) -> list[str]:
    """Run the script in a process of its own; return the words that it prints."""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    return result.stdout.split()
