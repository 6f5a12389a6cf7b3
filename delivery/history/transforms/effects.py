"""The effect of changed conditions on archived messages: a pure transform.

A condition is the pair of a header filter string and a filter, as a subscription has them; None
matches no message. Messages with a destination, and copies edited by a person, are left out: no
condition decides about them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from subscriptions.filters.document import header_name
from subscriptions.filters.errors import FilterError
from subscriptions.filters.parse import parse_filter
from subscriptions.filters.to_spark import to_spark
from subscriptions.filters.tree import And, Comparison, Condition, Operator, Path, Root

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EFFECTS = (
    "number int, asked bigint, more bigint, fewer bigint, example_of_more bigint, "
    "example_of_fewer bigint"
)
FILTER_STRING = header_name("FILTER_STRING")

Matching = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionChange:
    """A subscription's condition, before and after."""

    event_type: str
    before: Matching | None
    after: Matching | None


def matching_condition(header_filter_string: str, filter_text: str) -> Condition | None:
    """Return the condition on header and body, as in matching; None if every message matches.

    Raises FilterError.
    """
    asked: list[Condition] = []
    if header_filter_string:
        path = Path(Root.HEADER, (FILTER_STRING,), is_text=True)
        asked.append(Comparison(path, Operator.EQUAL, header_filter_string))
    if filter_text:
        asked.append(parse_filter(filter_text))
    return And(tuple(asked)) if len(asked) > 1 else next(iter(asked), None)


def effects(
    messages: "DataFrame", changes: Sequence[ConditionChange], *, event_type: str
) -> "DataFrame":
    """Return a row of EFFECTS for each change of this event type.

    `number` is the change's place in `changes`. `asked` is the number of messages, `more` and
    `fewer` those matching only after or only before the change, each with the newest message as
    example.
    """
    from pyspark.sql import functions as sql

    numbered = [
        (place, change) for place, change in enumerate(changes) if change.event_type == event_type
    ]
    columns = {
        f"{name}_{place}": _matches(matching)
        for place, change in numbered
        for name, matching in (("before", change.before), ("after", change.after))
    }
    asked = messages.where(
        (sql.col("event_type") == event_type)
        & (sql.col("destination") == "")
        & sql.col("edited_from").isNull()
    ).withColumns(columns)
    figures = asked.agg(sql.array(*(_figures(place) for place, _ in numbered)).alias("figures"))
    return figures.select(sql.inline("figures"))


def _matches(matching: Matching | None) -> "Column":
    from pyspark.sql import functions as sql

    if matching is None:
        return sql.lit(False)
    try:
        condition = matching_condition(*matching)
    except FilterError:
        # A filter no longer parsable matches no message.
        return sql.lit(False)
    if condition is None:
        return sql.lit(True)
    return sql.coalesce(
        to_spark(condition, header=sql.col("headers"), body=sql.col("body")), sql.lit(False)
    )


def _figures(place: int) -> "Column":
    from pyspark.sql import functions as sql

    before, after, id = sql.col(f"before_{place}"), sql.col(f"after_{place}"), sql.col("id")
    more, fewer = after & ~before, before & ~after
    return sql.struct(
        sql.lit(place).alias("number"),
        sql.count("*").alias("asked"),
        sql.count_if(more).alias("more"),
        sql.count_if(fewer).alias("fewer"),
        sql.max(sql.when(more, id)).alias("example_of_more"),
        sql.max(sql.when(fewer, id)).alias("example_of_fewer"),
    )
