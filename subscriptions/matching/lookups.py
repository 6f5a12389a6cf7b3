"""The look-ups of every publish, with their SQL written out.

Django takes four times as long to compose such a statement as PostgreSQL to answer it, which was a
quarter of the cost of publishing.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import OperationalError, connection
from django.db.models import Model
from psycopg.rows import tuple_row

from subscriptions.models import ApiKey, EventType, Publisher, Subscriber


def _in_order(model: type[Model], *names: str) -> list[str]:
    """Return the columns in the order of the model's fields, which `from_db` expects."""
    return [field.attname for field in model._meta.concrete_fields if field.attname in names]


_KEY = _in_order(
    ApiKey,
    "id",
    "name",
    "scope",
    "publisher_id",
    "subscriber_id",
    "hint",
    "expires_at",
    "revoked_at",
    "last_used_at",
)
_PUBLISHER = _in_order(Publisher, "id", "name", "all_event_types")
_SUBSCRIBER = _in_order(Subscriber, "id", "name")
_EVENT_TYPE = _in_order(
    EventType, "id", "name", "kind", "content_type", "json_schema", "durability", "ttl_seconds"
)


def _columns(table: str, names: Sequence[str]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


_KEY_BY_HASH = f"""
    SELECT
        {_columns("key", _KEY)},
        {_columns("publisher", _PUBLISHER)},
        {_columns("subscriber", _SUBSCRIBER)}
    FROM subscriptions_apikey key
    LEFT JOIN subscriptions_publisher publisher ON publisher.id = key.publisher_id
    LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = key.subscriber_id
    WHERE key.hash = $1
"""  # noqa: S608 - of names above
_EVENT_TYPE_BY_NAME = f"""
    SELECT {_columns("event_type", _EVENT_TYPE)}
    FROM subscriptions_eventtype event_type
    WHERE event_type.name = %s
"""  # noqa: S608 - of names above


def key_by_hash(key_hash: str) -> ApiKey | None:
    """Return the key, usable or not, with the owner, if any; the hash is left out.

    Every call begins with this statement. So it also replaces Django's check of the connection,
    which would cost another round trip: a connection lost since the last call is opened again.
    """
    try:
        row = _key_row(key_hash)
    except OperationalError:
        if connection.connection is None or connection.in_atomic_block or connection.is_usable():
            raise
        connection.close()
        row = _key_row(key_hash)
    connection.health_check_done = True  # type: ignore[attr-defined]  # The stubs lack it.
    if row is None:
        return None
    key = ApiKey.from_db(connection.alias, _KEY, row[: len(_KEY)])
    if key.publisher_id is not None:
        key.publisher = Publisher.from_db(
            connection.alias, _PUBLISHER, row[len(_KEY) : -len(_SUBSCRIBER)]
        )
    if key.subscriber_id is not None:
        key.subscriber = Subscriber.from_db(connection.alias, _SUBSCRIBER, row[-len(_SUBSCRIBER) :])
    return key


def _key_row(key_hash: str) -> tuple[Any, ...] | None:
    with connection.wrap_database_errors:
        connection.ensure_connection()
        # Django prepares no statements. This connection prepares only those with `prepare=True`:
        # planning this statement took longer than executing it.
        connection.connection.prepare_threshold = sys.maxsize
        cursor = psycopg.RawCursor(connection.connection, row_factory=tuple_row)
        if connection.queries_logged:
            # Django logs only the statements of Django's cursors.
            connection.queries_log.append({"sql": _KEY_BY_HASH, "time": "0"})
        return cursor.execute(_KEY_BY_HASH, [key_hash], prepare=True, binary=True).fetchone()


def event_type_by_name(name: str) -> EventType | None:
    """Return the event type with the fields for publishing: no sample, no description."""
    row = _row(_EVENT_TYPE_BY_NAME, name)
    if row is None:
        return None
    event_type = EventType.from_db(connection.alias, _EVENT_TYPE, row)
    if event_type.json_schema is not None:
        # The cursor returns jsonb as text; the model field would have parsed it.
        event_type.json_schema = json.loads(event_type.json_schema)
    return event_type


def _row(statement: str, value: str) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row
