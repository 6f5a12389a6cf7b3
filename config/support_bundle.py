"""The parts of a support bundle: facts about an installation without payloads and secrets."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from config.effective_settings import effective_settings, unknown_settings, without_credentials
from config.version import version
from subscriptions.values.shown_addresses import masked_addresses

Rows = list[dict[str, Any]]

LOG_BYTES = 512 * 1024
STATEMENT_SECONDS = 10
# Each is a part of the bundle. No statement reads bodies, headers, names of people, or texts sent
# by a receiver. Queries of other sessions are left out, too: they may contain values.
STATEMENTS: Mapping[str, str] = {
    "server": "SELECT version(), pg_postmaster_start_time() AS started_at, "
    "pg_is_in_recovery() AS is_standby, pg_database_size(current_database()) AS bytes, now()",
    "server_settings": "SELECT name, setting, unit, source FROM pg_settings "
    "WHERE source NOT IN ('default', 'client', 'override') ORDER BY name",
    "migrations": "SELECT app, name, applied FROM django_migrations ORDER BY applied, id",
    "tables": "SELECT relname, n_live_tup, n_dead_tup, n_tup_ins, n_tup_upd, n_tup_del, seq_scan, "
    "idx_scan, last_vacuum, last_autovacuum, last_autoanalyze, "
    "pg_total_relation_size(relid) AS bytes "
    "FROM pg_stat_user_tables ORDER BY bytes DESC",
    "indexes": "SELECT relname, indexrelname, idx_scan, pg_relation_size(indexrelid) AS bytes "
    "FROM pg_stat_user_indexes ORDER BY bytes DESC LIMIT 200",
    "sessions": "SELECT application_name, state, wait_event_type, wait_event, count(*), "
    "max(now() - xact_start) AS oldest_transaction "
    "FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC",
    "locks": "SELECT locktype, mode, granted, count(*) FROM pg_locks GROUP BY 1, 2, 3 "
    "ORDER BY 4 DESC",
    "database": "SELECT xact_commit, xact_rollback, deadlocks, conflicts, temp_bytes, blks_read, "
    "blks_hit, stats_reset FROM pg_stat_database WHERE datname = current_database()",
    "lanes": "SELECT kind, number, subscriber_id, state, since, delivery_id, failures, "
    "next_try_at, cardinality(run_ids) AS run FROM delivery_lane ORDER BY state, since LIMIT 1000",
    "waiting": "SELECT status, count(*) "
    "FROM (SELECT status FROM delivery_waiting LIMIT 1000000) AS counted GROUP BY 1",
    "journal": "SELECT kind, count(*), max(at) AS last FROM delivery_journalentry "
    "WHERE at > now() - interval '1 day' GROUP BY 1 ORDER BY 1",
    "pipeline": "SELECT id, step, state, started_at, ended_at, done, count "
    "FROM delivery_pipelinerun ORDER BY id DESC LIMIT 50",
}


def about() -> dict[str, Any]:
    """Return the versions, the machine and the free disk space."""
    home = settings.ENVIRONMENT.home
    return {
        "made_at": timezone.now(),
        "inturn": version(),
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "memory": _text(Path("/proc/meminfo"))[:2000],
        "disk": shutil.disk_usage(home)._asdict() if home.exists() else None,
        "packages": sorted(
            f"{distribution.name} {distribution.version}"
            for distribution in metadata.distributions()
        ),
    }


def shown_settings() -> str:
    lines = [
        f"{setting.name}  {setting.value}  [{setting.source}]" for setting in effective_settings()
    ]
    return "\n".join([*lines, *(f"{name} is not a setting" for name in unknown_settings())]) + "\n"


def database(say: Callable[[str], None]) -> Iterator[tuple[str, Rows | str]]:
    """Yield the rows of each statement, or an error: bundles are made of broken databases, too."""
    for name, statement in STATEMENTS.items():
        say(f"reading {name}")
        try:
            with _briefly():
                yield name, _rows(statement)
        except Error as error:
            connection.close()
            yield name, _harmless(" ".join(str(error).split()))


def logs() -> Iterator[tuple[str, str]]:
    """Yield the end of each log."""
    for path in sorted((settings.ENVIRONMENT.home / "logs").glob("*.log")):
        with path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_BYTES))
            yield path.name, _harmless(log.read().decode(errors="replace"))


def _harmless(text: str) -> str:
    """Return a text without credentials, and with the secrets of receivers' addresses masked."""
    return masked_addresses(without_credentials(text))


@contextmanager
def _briefly() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
        yield
        cursor.execute("SET statement_timeout = 0")


def _rows(statement: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
