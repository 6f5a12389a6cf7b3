"""`bench`: measure Inturn on this machine. The benchmarks are part of a checkout's tests."""

import signal
import subprocess
import sys

from django.core.management.base import BaseCommand

from config.env import CHECKOUT
from delivery.cluster.orphans import end_with_parent


class Command(BaseCommand):
    help = (
        "Measure how fast messages are accepted and delivered, beside bare loops in the same run."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        # Without Django's parser, because the benchmarks have their own.
        if not (CHECKOUT / "tests" / "bench").is_dir():
            sys.exit(
                "The benchmarks are in the folder `tests` of a checkout, and it is not here. Clone "
                "the repository to measure."
            )
        # SIGTERM ends it in order, like Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        command = [sys.executable, "-m", "tests.bench.command", *argv[2:]]
        with subprocess.Popen(
            command, cwd=CHECKOUT, preexec_fn=end_with_parent(signal.SIGTERM)
        ) as process:
            try:
                sys.exit(process.wait())
            finally:
                # Terminated, not killed: it has child processes to end.
                process.terminate()
