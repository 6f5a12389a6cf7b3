"""The effect of a plan, had it applied to the last messages: deliveries more and fewer.

A message serves as an example of each. For each created or deleted subscription, each with another
filter, header string or status, and each whose subscriber gets another status, the database
evaluates the newest messages of the event type. Two rules are ignored: earlier subscriptions of a
FIRST subscriber, which take messages, and the choice of an endpoint in a QUEUE group.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from delivery.configuration.changed_matches import (
    ConcernedSubscription,
    MatchCondition,
    concerned_by,
)
from delivery.configuration.document.plan import Plan
from delivery.database.statements import statement
from delivery.models.message import public_id
from subscriptions.filters import FilterError, parse_filter, to_sql
from subscriptions.values.counts import counted

MESSAGES = 1000
BYTES = 8 * 1024 * 1024
# Each takes a tenth of a second at worst.
MOST = 50

# A condition with named parameters.
Condition = tuple[str, dict[str, Any]]
_NEVER: Condition = ("false", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The number of deliveries `more` and `fewer` among the `asked` newest messages."""

    label: str
    asked: int
    more: int
    fewer: int
    example_of_more: int | None
    example_of_fewer: int | None

    @property
    def difference(self) -> str:
        parts = [
            (f"{counted(count, 'delivery')} {word}, for example of {public_id(example)}")
            for count, word, example in (
                (self.fewer, "fewer", self.example_of_fewer),
                (self.more, "more", self.example_of_more),
            )
            if example is not None
        ]
        return "; ".join(parts) or "no delivery more or fewer"

    def __str__(self) -> str:
        return f"{self.label}: of the last {counted(self.asked, 'message')} {self.difference}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The effects for the first MOST subscriptions; `left_out` counts the others."""

    effects: list[Effect]
    left_out: int


def effects_of(plan: Plan) -> Effects:
    concerned = concerned_by(plan)
    asked = (_effect(subscription) for subscription in concerned[:MOST])
    return Effects(
        effects=[effect for effect in asked if effect.asked], left_out=max(len(concerned) - MOST, 0)
    )


def _effect(subscription: ConcernedSubscription) -> Effect:
    before, after = (
        _condition(subscription.before, "before"),
        _condition(subscription.after, "after"),
    )
    bounds = {"event_type": subscription.event_type.pk, "messages": MESSAGES, "bytes": BYTES}
    text = statement("effect_of_change").replace("{before}", before[0]).replace("{after}", after[0])
    with connection.cursor() as cursor:
        cursor.execute(text, bounds | before[1] | after[1])
        columns = [column.name for column in cursor.description or ()]
        found = dict(zip(columns, cursor.fetchone() or (), strict=True))
    return Effect(label=subscription.label, **found)


def _condition(wanted: MatchCondition | None, prefix: str) -> Condition:
    """Return it in SQL."""
    if wanted is None:
        return _NEVER
    parts, parameters = ["true"], dict[str, Any]()
    if wanted.header_filter_string:
        parts.append(f"headers->>'filter-string' = %({prefix}_header)s")
        parameters[f"{prefix}_header"] = wanted.header_filter_string
    if wanted.filter:
        try:
            expression, given = to_sql(parse_filter(wanted.filter), header="headers", body="body")
        except FilterError:
            # A filter no longer parsable qualifies nothing.
            return _NEVER
        names = [f"{prefix}_{number}" for number in range(len(given))]
        parts.append("".join(_named(expression, names)))
        parameters |= dict(zip(names, given, strict=True))
    return " AND ".join(f"({part})" for part in parts), parameters


def _named(expression: str, names: list[str]) -> Iterator[str]:
    """Yield the expression with named parameters; the compiler's are positional."""
    first, *others = expression.split("%s")
    yield first
    for name, text in zip(names, others, strict=True):
        yield f"%({name})s{text}"
