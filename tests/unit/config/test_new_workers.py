"""A web worker that was forked just now ends by SIGTERM, as if it had never had a handler."""

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


def test_sigterm_ends_each_new_worker_and_the_main_process_still_handles_its_own() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert result.stdout.split() == ["50", "1"]
