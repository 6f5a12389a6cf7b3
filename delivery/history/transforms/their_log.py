"""The log of another broker as rows to compare: pure transforms.

A log has a row for each delivery or for each attempt. The columns are text.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delivery.history.transforms.measures import STATUSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PENDING, SHADOW = "PENDING", "SHADOW"
# The possible statuses of a log; others need a translation. Other brokers have no SHADOW.
KNOWN_STATUSES = (PENDING, *(status for status in STATUSES.values() if status != SHADOW))
# Of an HTTP status, by the first digit. A 5xx row of a log is a failed delivery.
_OF_CODES = {"2": "DELIVERED", "3": "3xxNOTSUPPORTED", "4": "REJECTED", "5": "FAILED"}


def their_rows(
    log: "DataFrame", *, statuses: Mapping[str, str], time_format: str = ""
) -> "DataFrame":
    """Return `subscription`, `key`, `status`, `at`, and the texts of unreadable values.

    `log` has the columns `subscription`, `key`, `status_text` and `time_text`. `statuses`
    translates the log's words in upper case. `unknown_status` and `unknown_time` are null unless
    the text is unreadable. Blank texts are null.
    """
    from pyspark.sql import functions as sql

    texts = log.select(
        *(
            sql.nullif(sql.trim(sql.col(name)), sql.lit("")).alias(name)
            for name in ("subscription", "key", "status_text", "time_text")
        )
    )
    form = [sql.lit(time_format)] if time_format else []
    rows = texts.withColumns(
        {
            "status": _status(statuses),
            "at": sql.try_to_timestamp("time_text", *form),
        }
    )
    return rows.select(
        sql.coalesce("subscription", sql.lit("")).alias("subscription"),
        "key",
        "status",
        "at",
        sql.when(sql.col("status").isNull(), sql.col("status_text")).alias("unknown_status"),
        sql.when(sql.col("at").isNull(), sql.col("time_text")).alias("unknown_time"),
    )


def _status(statuses: Mapping[str, str]) -> "Column":
    """Return the status of `status_text`: by translation, by name, or of an HTTP status."""
    from pyspark.sql import functions as sql

    text = sql.upper("status_text")
    names = {name.upper(): name for name in KNOWN_STATUSES} | dict(statuses)
    by_name = _looked_up(names, text)
    is_code = text.rlike(r"^[2-5][0-9][0-9]$")
    return sql.coalesce(
        by_name, sql.when(is_code, _looked_up(_OF_CODES, sql.substring(text, 1, 1)))
    )


def _looked_up(names: Mapping[str, str], text: "Column") -> "Column":
    from pyspark.sql import functions as sql

    pairs = [sql.lit(part) for pair in names.items() for part in pair]
    return sql.try_element_at(sql.create_map(*pairs), text)
