"""Writes the history: messages, deliveries and attempts in parts, then the rows around them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from delivery.maintenance import traffic
from delivery.models import Lane, LaneKind, Message
from delivery.models.delivery import ids_of_message
from subscriptions.models import Publisher
from tests.support.many import bare_tables, bodies
from tests.support.many.around import write_around
from tests.support.many.configured import APPLICATION
from tests.support.many.sizes import DAYS, Sizes

# Messages per statement: few enough to be sorted in memory.
PART = 25_000

Say = Callable[[str], None]


def write(sizes: Sizes, *, now: datetime, real: Path | None, say: Say) -> None:
    """Write the history in one transaction: half of it would be measured as if it were whole."""
    with transaction.atomic():
        for setting in (
            "synchronous_commit = off",
            "work_mem = '64MB'",
            "maintenance_work_mem = '400MB'",
        ):
            _execute(f"SET LOCAL {setting}")
        again = bare_tables.strip()
        around: dict[str, Any] = {
            "now": now,
            "days": DAYS,
            "journal": sizes.journal,
            "changes": sizes.changes,
        }
        _execute(_read("plot"), around)
        with reported("messages, deliveries and attempts", say):
            around |= _write_messages(sizes, now=now, real=real)
        with reported("indexes and foreign keys", say):
            for statement in again:
                _execute(statement)
        for name in ("lanes", "journal", "others"):
            with reported(name, say):
                _execute(_read(name), around)
        write_around(sizes, now=now)
    with reported("vacuum", say):
        _execute("VACUUM (ANALYZE)")
    with reported("traffic of the last day", say):
        while _count_traffic():
            pass


@transaction.atomic
def _count_traffic() -> bool:
    return traffic.count_next_piece()


@contextmanager
def reported(what: str, say: Say) -> Iterator[None]:
    began = time.monotonic()
    yield
    say(f"{time.monotonic() - began:7.1f} s  {what}")


def _write_messages(sizes: Sizes, *, now: datetime, real: Path | None) -> dict[str, int]:
    """Return the ids of the first message and the last."""
    beginnings = bodies.beginnings(real)
    _write_bodies(beginnings)
    fixed = _constants(sizes, now=now) | {"bodies": len(beginnings)}
    messages, deliveries, attempts = (
        _read(name) for name in ("messages", "deliveries", "attempts")
    )
    first_message = _next_id()
    for first in range(1, sizes.messages + 1, PART):
        message = _next_id()
        last = min(first + PART - 1, sizes.messages)
        _execute(messages, fixed | {"first": first, "last": last})
        _execute(deliveries, fixed | {"first": message, "last": _next_id() - 1})
        ids = ids_of_message(message)[0], ids_of_message(_next_id() - 1)[1]
        _execute(attempts, {"first": ids[0], "last": ids[1]})
    return {"first": first_message, "last": _next_id() - 1}


def _constants(sizes: Sizes, *, now: datetime) -> dict[str, Any]:
    queues = Lane.objects.filter(kind=LaneKind.QUEUE).order_by("number")
    publishers = Publisher.objects.filter(name__startswith=APPLICATION)
    return {
        "now": now,
        "days": DAYS,
        "messages": sizes.messages,
        "publishers": list(publishers.values_list("pk", flat=True)),
        "queue_lanes": list(queues.values_list("pk", flat=True)),
        "retry_lane": Lane.objects.get(kind=LaneKind.RETRY).pk,
    }


def _write_bodies(beginnings: list[str]) -> None:
    _execute(
        "CREATE TEMPORARY TABLE many_body (number int PRIMARY KEY, beginning text) ON COMMIT DROP"
    )
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO many_body VALUES (%s, %s)", list(enumerate(beginnings)))


def _next_id() -> int:
    newest: int = Message.objects.aggregate(newest=Max("pk", default=0))["newest"]
    return newest + 1


def _read(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


def _execute(sql: str, parameters: dict[str, Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
