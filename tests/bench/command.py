"""`python -m tests.bench.command`: measure Inturn here, with a temporary server and home."""

import json
import signal
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from config.embedded.postgres import Server
from config.env import CHECKOUT
from config.static_sources import sources_digest
from config.up import processes
from config.up.child import MANAGE
from delivery.cluster.orphans import end_with_parent
from tests.bench.sizes import QUICK, BenchSizes

SCENARIOS = {
    "publish": ("single", "batches", "filters"),
    "deliver": ("lanes", "few", "alone", "many", "retries"),
    "latency": ("idle-lanes",),
    "together": ("ten", "hundred"),
    "endurance": ("steady",),
    "idle": ("nothing",),
    "cost": ("message",),
    "scale": ("subscribers", "stored", "configuration"),
    "machines": ("direct", "pooled"),
    "queue": ("group",),
    "scripts": ("beside-scripts",),
    "mailbox": ("drain", "depth"),
    "console": (),
    "history": ("export", "verify", "beside"),
}
# The benchmarks whose server logs each statement, prefixed by the application's name.
LOGGING = {"cost": {"log_statement": "all", "log_line_prefix": "%a|"}}
# As many deliveries as the promised numbers refer to, and as `--quick` creates.
DELIVERIES, QUICK_DELIVERIES = {"console": 5_000_000, "history": 1_000_000}, 5_000


def main() -> None:
    parser = _parser()
    options = parser.parse_args()
    scenarios = options.only or SCENARIOS[options.bench]
    if unknown := set(scenarios) - set(SCENARIOS[options.bench]):
        parser.error(f"`bench {options.bench}` has no scenario {', '.join(sorted(unknown))}.")
    if options.database and options.bench != "console":
        parser.error(
            f"`bench {options.bench}` empties tables: it only runs on a database of its own."
        )
    request = {
        "bench": options.bench,
        "sizes": asdict(_sizes(options)),
        "scenarios": scenarios,
        "json": options.json,
    }
    with surroundings(options.database, LOGGING.get(options.bench)) as environment:
        if options.bench in DELIVERIES:
            usual = QUICK_DELIVERIES if options.quick else DELIVERIES[options.bench]
            _fill(options.deliveries or usual, environment)
        sys.exit(run([sys.executable, "-m", "tests.bench", json.dumps(request)], environment))


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="manage.py bench",
        description="Measure how fast messages are accepted and delivered, beside bare loops in "
        "the same run. Takes some minutes.",
    )
    parser.add_argument("bench", choices=SCENARIOS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a few hundred messages: shows that it works, not how fast",
    )
    parser.add_argument("--rounds", type=int, help="turns that product and bare loops take")
    parser.add_argument(
        "--seconds",
        type=float,
        help="latency, together, endurance, idle, machines: measure for so long",
    )
    parser.add_argument(
        "--stored",
        type=int,
        action="append",
        help="scale: stored deliveries; repeat it for each step",
    )
    parser.add_argument("--plot", metavar="DIR", help="scale: write SVG files into this folder")
    parser.add_argument(
        "--messages", type=int, help="deliveries over 100 lanes, or from a mailbox, in a round"
    )
    parser.add_argument(
        "--deliveries", type=int, help="console, history: stored deliveries, at least"
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="console: use this database and leave it as it is; an empty one is filled first",
    )
    names = [name for names in SCENARIOS.values() for name in names]
    parser.add_argument(
        "--only", choices=names, action="append", help="this scenario; may be repeated"
    )
    return parser


def _sizes(options: Namespace) -> BenchSizes:
    given = {
        "rounds": options.rounds,
        "alone_rounds": options.rounds,
        "many_rounds": options.rounds,
        "depth_rounds": options.rounds,
        "history_rounds": options.rounds,
        "beside_rounds": options.rounds,
        "growth_rounds": options.rounds,
        "script_rounds": options.rounds,
        "machine_rounds": options.rounds,
        "deliveries": options.messages,
        "latency_seconds": options.seconds,
        "together_seconds": options.seconds,
        "endurance_seconds": options.seconds,
        "idle_seconds": options.seconds,
        "machine_seconds": options.seconds,
        "stored": options.stored,
        "plot": options.plot and str(Path(options.plot).resolve()),
        "mailbox_messages": options.messages,
    }
    return replace(
        QUICK if options.quick else BenchSizes(),
        **{name: number for name, number in given.items() if number is not None},
    )


@contextmanager
def surroundings(
    database: str | None = None, server_settings: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the environment with a home and a server which writes to disk as a real server.

    Both are removed. If a database is passed, it is used instead, with the home of the keys.
    """
    # SIGTERM ends it in order, like Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as stack:
        home = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="inturn-bench-", ignore_cleanup_errors=True)
            )
        )
        # If PostgreSQL runs as `nobody`, it needs access to the folder.
        home.chmod(0o711)
        # Whitenoise warns if there is no folder of collected files.
        (home / "static" / sources_digest()).mkdir(parents=True)
        if database is None:
            server = Server(home, settings=server_settings)
            stack.callback(server.stop)
            where = {"DATABASE_URL": server.start(), "INTURN_HOME": str(home)}
        else:
            where = {"DATABASE_URL": database}
        environment = (
            processes.environment(postgres=False)
            | {
                "INTURN_ALLOWED_NETWORKS": "127.0.0.0/8",
                "INTURN_LOG_LEVEL": "ERROR",
                # Otherwise plain `requests` would use a proxy for the loopback.
                "NO_PROXY": "127.0.0.1",
                "DJANGO_SETTINGS_MODULE": "config.settings",
                # The benchmark empties it, so it is never a real archive.
                "HISTORY_URL": str(home / "archive"),
            }
            | where
        )
        if run([sys.executable, MANAGE, "migrate", "--verbosity", "0"], environment):
            sys.exit("bench: the database could not be prepared: see above")
        yield environment


def _fill(deliveries: int, environment: dict[str, str]) -> None:
    """Fill the database with the tests' generator, unless it has enough deliveries."""
    command = [sys.executable, "-m", "tests.support.many", "--deliveries", str(deliveries)]
    if run(command, environment):
        sys.exit("bench: there are too few deliveries to measure: see above")


def run(command: list[str], environment: dict[str, str]) -> int:
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, preexec_fn=end_with_parent(signal.SIGTERM)
    ) as process:
        try:
            return process.wait()
        finally:
            # Not killed: it has child processes to end.
            process.terminate()


if __name__ == "__main__":
    main()
