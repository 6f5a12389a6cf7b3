"""`python -m tests.bench`: a benchmark in the environment of the command `bench`.

It reads sizes as JSON, and prints results on standard output.
"""

import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

import django

from tests.bench.sizes import BenchSizes


def run(bench: str, sizes: BenchSizes, *, scenarios: Sequence[str], as_json: bool) -> int:
    """Measure, print, and return the exit code.

    It is 1 if a message was lost, duplicated or out of order.
    """
    from tests.bench import (
        children,
        console,
        cost,
        deliver,
        endurance,
        history,
        idle,
        latency,
        machines,
        mailbox,
        matching,
        publish,
        queue,
        retries,
        scale,
        scripts,
        together,
    )
    from tests.bench.measuring import Measuring
    from tests.bench.results import print_report

    if bench == "console":
        return console.run(rounds=sizes.rounds, as_json=as_json)
    if bench == "history":
        return history.run(sizes, scenarios=scenarios, as_json=as_json)
    with children.receiver() as receiver:
        measuring = Measuring(sizes, receiver)
        modules = (
            *(deliver, retries, queue, scripts, mailbox, publish, matching),
            *(latency, together, endurance, idle, cost, scale, machines),
        )
        found = {name: measure for module in modules for name, measure in module.SCENARIOS.items()}
        results = [result for name in scenarios for result in found[name](measuring)]
    print_report(bench, results, measuring.receipt, as_json=as_json)
    return 0 if measuring.receipt.is_right else 1


if __name__ == "__main__":
    # Leave in order on SIGTERM, and end the child processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    options: dict[str, Any] = json.loads(sys.argv[1])
    django.setup()
    sys.exit(
        run(
            options["bench"],
            BenchSizes(**options["sizes"]),
            scenarios=options["scenarios"],
            as_json=options["json"],
        )
    )
