"""The log of another broker, a CSV file, read by Spark."""

from typing import TYPE_CHECKING

from delivery.history.steps.compare_request import COLUMNS, ComparisonError, ComparisonRequest
from delivery.history.transforms.their_log import their_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXAMPLES = 5


def read_their_log(spark: "SparkSession", wanted: ComparisonRequest) -> "DataFrame":
    """Return the rows of the log, those of the subscription; raises ComparisonError."""
    from pyspark.sql import functions as sql

    log = spark.read.csv(wanted.address, header=True, multiLine=True, quote='"', escape='"')
    there = set(log.columns)
    names = {column: wanted.columns.get(column, column) for column in COLUMNS}
    required = {"key", *wanted.columns}
    missing = [
        names[column] for column in COLUMNS if column in required and names[column] not in there
    ]
    if missing:
        raise ComparisonError(
            f"The log has no column {', '.join(missing)}; "
            f"it has {', '.join(log.columns) or 'none'}."
        )
    texts = {
        column: log[f"`{name}`"] if name in there else sql.lit(None).cast("string")
        for column, name in names.items()
    }
    renamed = {"status": "status_text", "time": "time_text"}
    rows = their_rows(
        log.select(*(text.alias(renamed.get(column, column)) for column, text in texts.items())),
        statuses=wanted.statuses,
        time_format=wanted.time_format,
    )
    if not wanted.subscription:
        return rows
    if names["subscription"] in there:
        return rows.filter(sql.col("subscription") == wanted.subscription)
    return rows.withColumn("subscription", sql.lit(wanted.subscription))


def refuse_unreadable(theirs: "DataFrame", wanted: ComparisonRequest) -> None:
    unknown = _some(theirs, "unknown_status")
    if unknown:
        raise ComparisonError(
            f"The log has statuses that Inturn does not know: {', '.join(unknown)}. "
            f"Translate each, for example --status {unknown[0]}=DELIVERED."
        )
    unknown = _some(theirs, "unknown_time")
    if unknown:
        form = wanted.time_format or "ISO 8601, such as 2026-11-22T10:15:00Z"
        raise ComparisonError(
            f"The log has times that are not {form}: {', '.join(unknown)}. "
            "Give their form, for example --time-format 'dd.MM.yyyy HH:mm:ss'."
        )


def _some(rows: "DataFrame", column: str) -> list[str]:
    found = (
        rows.filter(f"{column} IS NOT NULL")
        .select(column)
        .distinct()
        .orderBy(column)
        .limit(_EXAMPLES)
    )
    return [str(text) for (text,) in found.collect()]
