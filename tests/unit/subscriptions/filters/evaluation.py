"""Evaluates filters on many messages at once in PostgreSQL."""

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection

from subscriptions.filters import document, to_python, to_sql
from subscriptions.filters.to_sql import Parameter
from subscriptions.filters.tree import Condition, Not
from tests.unit.subscriptions.filters.random_messages import Message

_MESSAGES = """
FROM unnest(%s::jsonb[], %s::bytea[]) WITH ORDINALITY AS m (header, raw, position)
CROSS JOIN LATERAL (SELECT inturn_json(m.raw) AS body OFFSET 0) AS parsed
ORDER BY m.position
"""


def ask(
    expressions: Sequence[str], parameters: Sequence[Parameter], messages: Sequence[Message]
) -> list[Any]:
    """Return a row for each message with the value of each expression over `header` and `body`."""
    headers = [json.dumps(header) for header, _ in messages]
    raw = [body for _, body in messages]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(expressions)} {_MESSAGES}", [*parameters, headers, raw])
        return list(cursor.fetchall())


def answers(trees: Sequence[Condition], messages: Sequence[Message]) -> list[Any]:
    compiled = [to_sql(tree, header="header", body="body") for tree in trees]
    parameters = [parameter for _, given in compiled for parameter in given]
    return ask([sql for sql, _ in compiled], parameters, messages)


def truth(tree: Condition, message: Message) -> bool | None:
    """Return the closures' result; evaluating the negation too distinguishes false from null."""
    asked = document(*message)
    if to_python(tree)(asked):
        return True
    return False if to_python(Not(tree))(asked) else None
